-- Locks one batch of operations that were settled longer ago than they are kept [P3]. What is not settled is never
-- chosen, however old. A reservation is its own refusal record; the retention is never shorter than its key's lifetime [B3].
--
-- $1 retention  $2 rows at most
SELECT o.id
  FROM pawl.operations AS o
 WHERE o.settled_at < statement_timestamp() - greatest($1::interval, (SELECT m.key_lifetime FROM pawl.meta AS m WHERE m.only_row))
 ORDER BY o.settled_at
 LIMIT $2::bigint
   FOR UPDATE SKIP LOCKED
