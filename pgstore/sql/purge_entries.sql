-- Deletes entries older than they are kept from the logs of locked operations. What purges and erasures left behind stays.
--
-- $1 operation ids  $2 retention  $3 rows at most
WITH gone AS (
    DELETE FROM pawl.entries AS e
     WHERE e.ctid = ANY (ARRAY(
           SELECT d.ctid
             FROM pawl.entries AS d
            WHERE d.operation_id = ANY ($1::uuid[])
              AND d.type NOT IN ('purge', 'erasure')
              AND d.last_at < statement_timestamp() - $2::interval
            LIMIT $3::bigint))
    RETURNING e.operation_id
)
SELECT g.operation_id, count(*) FROM gone AS g GROUP BY g.operation_id
