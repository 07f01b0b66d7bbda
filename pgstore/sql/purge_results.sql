-- Clears one batch of results that are older than they are kept, and notes it in the logs [P3, M9]. The digest stays, so
-- that a duplicate is still told from a divergence.
--
-- $1 retention  $2 rows at most
WITH due AS MATERIALIZED (
    SELECT o.id
      FROM pawl.operations AS o
     WHERE o.result_due_from < statement_timestamp() - $1::interval
     ORDER BY o.result_due_from
     LIMIT $2::bigint
       FOR UPDATE SKIP LOCKED
), cleared AS (
    UPDATE pawl.operations AS o
       SET result = ''::bytea, result_due_from = NULL, entries = o.entries + 1
      FROM due AS d
     WHERE o.id = d.id
    RETURNING o.id, o.entries
), logged AS (
    INSERT INTO pawl.entries (
           operation_id, key, seq, type, at, last_at, count, fence, source, verdict, disposition, contradiction, mismatch_of,
           reason)
    SELECT r.id, r.entries::text, r.entries, 'purge', statement_timestamp(), statement_timestamp(), 1, 0, 'retention', 0,
           'applied', false, '', 'result'
      FROM cleared AS r
)
SELECT count(*) FROM cleared
