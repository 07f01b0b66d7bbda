-- Tells what a purge left: how long the oldest refusal record is overdue, what else is due, and unsettled operations
-- older than every retention, which time never deletes [P3].
--
-- $1 retention of operations  $2 of log entries  $3 of results  $4 the longest of all
SELECT (extract(epoch FROM statement_timestamp() - m.purge_margin - (SELECT min(c.retain_until) FROM pawl.claims AS c))
           * 1000000)::bigint,
       EXISTS (SELECT FROM pawl.grants AS g JOIN pawl.leeways AS l ON l.version = g.leeway_policy
                WHERE g.expires_at < statement_timestamp() - m.purge_margin
                  AND g.expires_at + l.leeway < statement_timestamp() - m.purge_margin
                  AND NOT EXISTS (SELECT FROM pawl.claims AS c
                                   WHERE c.issuer = g.issuer AND c.namespace = g.namespace AND c.grant_id = g.grant_id))
       OR EXISTS (SELECT FROM pawl.operations AS o WHERE o.settled_at < statement_timestamp() - $1::interval)
       OR EXISTS (SELECT FROM pawl.operations AS o WHERE o.log_due_from < statement_timestamp() - $2::interval)
       OR EXISTS (SELECT FROM pawl.operations AS o WHERE o.result_due_from < statement_timestamp() - $3::interval),
       (SELECT count(*) FROM pawl.operations AS o
         WHERE o.settled_at IS NULL AND o.created_at < statement_timestamp() - $4::interval)
  FROM pawl.meta AS m
