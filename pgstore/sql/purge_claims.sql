-- Deletes one batch of refusal records that no admission can need any more [P1, P4]. It runs only after the bound was
-- read in force on a connection that admissions use [P2].
--
-- $1 rows at most
WITH gone AS (
    DELETE FROM pawl.claims AS c
     WHERE c.ctid = ANY (ARRAY(
           SELECT d.ctid
             FROM pawl.claims AS d
            WHERE d.retain_until < statement_timestamp() - (SELECT m.purge_margin FROM pawl.meta AS m)    -- [P1] strictly, by the margin
            ORDER BY d.retain_until
            LIMIT $1::bigint
              FOR UPDATE SKIP LOCKED))
    RETURNING 1
)
SELECT count(*) FROM gone
