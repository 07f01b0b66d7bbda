-- Reads which version of the tables is there, and the oldest version of the code that may use them.
SELECT s.version, s.min_reader
  FROM pawl.schema_state AS s
