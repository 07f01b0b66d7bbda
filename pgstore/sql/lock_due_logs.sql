-- Locks one batch of settled operations whose logs may have entries older than they are kept [P3].
--
-- $1 retention  $2 rows at most
SELECT o.id
  FROM pawl.operations AS o
 WHERE o.log_due_from < statement_timestamp() - $1::interval
 ORDER BY o.log_due_from
 LIMIT $2::bigint
   FOR UPDATE SKIP LOCKED
