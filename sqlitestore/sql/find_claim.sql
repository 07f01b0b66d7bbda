-- Who holds a grant key: an operation, or a revocation where operation_id is NULL.
SELECT operation_id, claimed_at, revoked_by, reason
FROM pawl_claims
WHERE issuer = :issuer AND namespace = :namespace AND grant_id = :grant_id -- [A5]
