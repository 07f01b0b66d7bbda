-- The unused, unexpired stored grants of one subject for one intent, oldest
-- first; the caller holds the write lock and withdraws them [R1].
SELECT g.issuer, g.namespace, g.grant_id, g.form, g.request_id, g.request_digest, g.subject, g.tenant, g.authority,
       g.kind, g.details, g.issued_at, g.expires_at, g.leeway_policy
FROM pawl_grants AS g
JOIN pawl_leeways AS l ON l.version = g.leeway_policy
WHERE g.issuer = :issuer AND g.subject = :subject AND g.tenant = :tenant
  AND g.form = 2
  AND g.fingerprint = :fingerprint
  AND g.expires_at + l.leeway > :now
  AND NOT EXISTS (
      SELECT 1 FROM pawl_claims AS c
      WHERE c.issuer = g.issuer AND c.namespace = g.namespace AND c.grant_id = g.grant_id
  )
ORDER BY g.seq
