-- Deletes one batch of grants' rows that can neither be admitted nor explain a claim. A missing row only refuses more.
--
-- $1 rows at most
WITH gone AS (
    DELETE FROM pawl.grants AS g
     WHERE g.ctid = ANY (ARRAY(
           SELECT d.ctid
             FROM pawl.grants AS d
             JOIN pawl.leeways AS l ON l.version = d.leeway_policy
            WHERE d.expires_at < statement_timestamp() - (SELECT m.purge_margin FROM pawl.meta AS m)
              AND d.expires_at + l.leeway < statement_timestamp() - (SELECT m.purge_margin FROM pawl.meta AS m)
              AND NOT EXISTS (SELECT FROM pawl.claims AS c
                               WHERE c.issuer = d.issuer AND c.namespace = d.namespace AND c.grant_id = d.grant_id)
            ORDER BY d.expires_at
            LIMIT $1::bigint))
    RETURNING 1
)
SELECT count(*) FROM gone
