-- Settled operations past their retention, counted from settlement, with their
-- logs [P3]. A reservation's is at least its key's lifetime [B3]. What is not
-- settled has no settled_at and is never deleted by time.
DELETE FROM pawl_operations
WHERE rowid IN (
    SELECT rowid
    FROM pawl_operations
    WHERE settled_at IS NOT NULL AND settled_at < :cutoff
    ORDER BY settled_at
    LIMIT :limit -- [P4]
)
