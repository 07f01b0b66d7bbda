-- Reads the key of owner tokens [O1].
SELECT s.token_key
  FROM pawl.secrets AS s
