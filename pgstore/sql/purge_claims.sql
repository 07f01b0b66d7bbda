-- Deletes one batch of refusal records that no admission can need any more [P1, P4]. It runs only after the bound was
-- read in force on a connection that admissions use [P2]. Rows are chosen and deleted in one snapshot, so that none is
-- locked for longer than it takes, and what another purge deletes first is passed over.
--
-- $1 rows at most
WITH gone AS (
    DELETE FROM pawl.claims AS c
     WHERE c.ctid = ANY (ARRAY(
           SELECT d.ctid
             FROM pawl.claims AS d
            WHERE d.retain_until < statement_timestamp() - (SELECT m.purge_margin FROM pawl.meta AS m)    -- [P1] strictly, by the margin
            ORDER BY d.retain_until
            LIMIT $1::bigint))
    RETURNING 1
)
SELECT count(*) FROM gone
