-- Settled operations with log entries past their retention: counted from
-- settlement and, for what came after it, from the entry itself [P3].
SELECT o.operation_id
FROM pawl_operations AS o INDEXED BY pawl_operations_log
WHERE o.settled_at IS NOT NULL AND o.log_kept = 1 AND o.settled_at < :cutoff
  AND EXISTS (
      SELECT 1 FROM pawl_entries AS e
      WHERE e.operation_id = o.operation_id AND e.last_at < :cutoff AND e.type NOT IN ('purge', 'erasure')
  )
ORDER BY o.settled_at
LIMIT :limit
