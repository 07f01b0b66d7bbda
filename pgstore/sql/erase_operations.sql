-- Removes details and results of one principal's settled operations and of their grants, and logs that it did. Lock, digest
-- and log remain: they are what refusal and audit need.
--
-- $1 authority  $2 principal  $3 tenant  $4 who  $5 why  $6 rows at most
WITH due AS MATERIALIZED (
    SELECT o.id
      FROM pawl.operations AS o
     WHERE o.authority = $1::text AND o.principal = $2::text AND o.tenant = $3::text
       AND o.settled_at IS NOT NULL
       AND NOT o.erased
     ORDER BY o.created_at, o.id
     LIMIT $6::bigint
       FOR UPDATE
), erased AS (
    UPDATE pawl.operations AS o
       SET details = '{}', erased = true, entries = o.entries + 1, result_due_from = NULL,
           result = CASE WHEN o.result IS NOT NULL THEN ''::bytea END
      FROM due AS d
     WHERE o.id = d.id
    RETURNING o.id, o.entries, o.issuer, o.namespace, o.grant_id
), granted AS (
    UPDATE pawl.grants AS g
       SET details = '{}'                                 -- the fingerprint stays, which is what is compared
      FROM erased AS r
     WHERE g.issuer = r.issuer AND g.namespace = r.namespace AND g.grant_id = r.grant_id -- [A5]
), logged AS (
    INSERT INTO pawl.entries (
           operation_id, key, seq, type, at, last_at, count, fence, source, verdict, disposition, contradiction, mismatch_of,
           reason)
    SELECT r.id, r.entries::text, r.entries, 'erasure', statement_timestamp(), statement_timestamp(), 1, 0, $4::text, 0,
           'applied', false, '', $5::text
      FROM erased AS r                                    -- [M9]
)
SELECT count(*) FROM erased
