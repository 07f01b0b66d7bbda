-- Reads what a new connection really is: its settings as they are in force, and which store it reached [A11, A1].
SELECT current_setting('server_version_num')::integer,
       @session
  FROM pawl.meta AS m
 WHERE m.only_row
