-- The grant that a request of this issuer made: a repeated request gets it again.
SELECT g.issuer, g.namespace, g.grant_id, g.form, g.request_id, g.request_digest, g.subject, g.tenant, g.authority,
       g.kind, g.details, g.issued_at, g.expires_at, g.leeway_policy
FROM pawl_grants AS g
WHERE g.issuer = :issuer AND g.request_id = :request_id
