-- Notes in the logs that entries were deleted [M9], and from when the retention of what is left counts.
--
-- $1 operation ids  $2 those of them that lost entries
WITH counted AS (
    UPDATE pawl.operations AS o
       SET log_due_from = (SELECT min(e.last_at) FROM pawl.entries AS e
                            WHERE e.operation_id = o.id AND e.type NOT IN ('purge', 'erasure')),
           entries = o.entries + CASE WHEN o.id = ANY ($2::uuid[]) THEN 1 ELSE 0 END
     WHERE o.id = ANY ($1::uuid[])
    RETURNING o.id, o.entries
)
INSERT INTO pawl.entries (
       operation_id, key, seq, type, at, last_at, count, fence, source, verdict, disposition, contradiction, mismatch_of, reason)
SELECT n.id, n.entries::text, n.entries, 'purge', statement_timestamp(), statement_timestamp(), 1, 0, 'retention', 0,
       'applied', false, '', 'log entries'
  FROM counted AS n
 WHERE n.id = ANY ($2::uuid[])
