-- Adds a leeway policy. One that is there is never edited [T1].
--
-- $1 version  $2 leeway
INSERT INTO pawl.leeways (version, leeway)
VALUES ($1::text, $2::interval)
ON CONFLICT (version) DO NOTHING
