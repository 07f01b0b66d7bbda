-- Moves what the log holds into the file, as far as that needs nobody to wait:
-- writers go on meanwhile [P4].
PRAGMA wal_checkpoint(PASSIVE)
