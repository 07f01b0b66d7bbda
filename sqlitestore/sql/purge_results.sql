-- Results past their retention. The digest stays, so that a duplicate is still
-- told from a divergence [M4].
UPDATE pawl_operations
SET result = x'', entries = entries + 1
WHERE rowid IN (
    SELECT rowid
    FROM pawl_operations INDEXED BY pawl_operations_result
    WHERE result > x'' AND settled_at < :cutoff
    ORDER BY settled_at
    LIMIT :limit -- [P4]
)
RETURNING operation_id, entries
