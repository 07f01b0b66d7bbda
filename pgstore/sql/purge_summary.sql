-- Tells what a purge left: how long the oldest refusal record is overdue, whether more is due, and, once nothing more
-- is, how many unsettled operations are older than every retention, which time never deletes [P3]. Settled ones of that
-- age, through which that count reads, are gone by then.
--
-- $1 retention of operations  $2 of log entries  $3 of results  $4 the longest of all  $5 refusal records may be deleted
--   $6 this batch deleted something: what it passed over is locked by somebody, and is no reason to come back at once
WITH late AS MATERIALIZED (
    SELECT m.purge_margin, m.key_lifetime,
           (extract(epoch FROM statement_timestamp() - m.purge_margin - (SELECT min(c.retain_until) FROM pawl.claims AS c))
               * 1000000)::bigint AS overdue
      FROM pawl.meta AS m
),
due AS MATERIALIZED (
    SELECT l.overdue,
           $6::boolean AND (
           $5::boolean AND coalesce(l.overdue > 0, false)
           OR EXISTS (SELECT FROM pawl.grants AS g JOIN pawl.leeways AS w ON w.version = g.leeway_policy
                       WHERE g.expires_at < statement_timestamp() - l.purge_margin
                         AND g.expires_at + w.leeway < statement_timestamp() - l.purge_margin
                         AND NOT EXISTS (SELECT FROM pawl.claims AS c
                                          WHERE c.issuer = g.issuer AND c.namespace = g.namespace
                                            AND c.grant_id = g.grant_id))
           OR EXISTS (SELECT FROM pawl.operations AS o WHERE o.settled_at < statement_timestamp() - greatest($1::interval, l.key_lifetime))
           OR EXISTS (SELECT FROM pawl.operations AS o WHERE o.log_due_from < statement_timestamp() - $2::interval)
           OR EXISTS (SELECT FROM pawl.operations AS o WHERE o.result_due_from < statement_timestamp() - $3::interval))
           AS more
      FROM late AS l
)
SELECT d.overdue, d.more,
       CASE WHEN d.more THEN 0
            ELSE (SELECT count(*) FROM pawl.operations AS o
                   WHERE o.settled_at IS NULL AND o.created_at < statement_timestamp() - $4::interval)
       END
  FROM due AS d
