-- The sequence number of the entry that tells of a purge [M9]; log_kept says
-- whether retention has anything left to do here.
UPDATE pawl_operations
SET entries = entries + 1,
    log_kept = EXISTS (
        SELECT 1 FROM pawl_entries AS e
        WHERE e.operation_id = :operation_id AND e.type NOT IN ('purge', 'erasure')
    )
WHERE operation_id = :operation_id
RETURNING entries
