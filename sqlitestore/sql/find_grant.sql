-- The record of an issue by the grant's key [A2, R2].
SELECT g.issuer, g.namespace, g.grant_id, g.form, g.request_id, g.request_digest, g.subject, g.tenant, g.authority,
       g.kind, g.details, g.issued_at, g.expires_at, g.leeway_policy
FROM pawl_grants AS g
WHERE g.issuer = :issuer AND g.namespace = :namespace AND g.grant_id = :grant_id -- [A5]
