-- Writes the key of owner tokens, once [O1].
--
-- $1 key
INSERT INTO pawl.secrets (token_key)
VALUES ($1::bytea)
ON CONFLICT (only_row) DO NOTHING
