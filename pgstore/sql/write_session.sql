-- Reads whether this session may write, within the transaction that does [A11].
SELECT @session
  FROM pawl.meta AS m
 WHERE m.only_row
