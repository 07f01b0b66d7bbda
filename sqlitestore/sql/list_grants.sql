-- One page of grants with what became of them, newest first. before is the last
-- one of the page that came before.
SELECT g.seq, g.issuer, g.namespace, g.grant_id, g.form, g.request_id, g.request_digest, g.subject, g.tenant, g.authority,
       g.kind, g.details, g.issued_at, g.expires_at, g.leeway_policy,
       c.operation_id, c.claimed_at, c.revoked_by, c.reason,
       CASE
           WHEN c.revoked_by IS NOT NULL THEN 'revoked'
           WHEN c.operation_id IS NOT NULL THEN 'used'
           WHEN g.expires_at + l.leeway <= t.now THEN 'expired' -- at its deadline a grant is over [A4]
           ELSE 'issued'
       END AS state
FROM pawl_grants AS g
JOIN pawl_leeways AS l ON l.version = g.leeway_policy
JOIN (
    SELECT max(time_floor, coalesce(:clock, CAST(unixepoch('subsec') * 1000 + 0.5 AS INTEGER) * 1000)) AS now -- [P1]
    FROM pawl_meta WHERE one = 1
) AS t
LEFT JOIN pawl_claims AS c ON c.issuer = g.issuer AND c.namespace = g.namespace AND c.grant_id = g.grant_id
WHERE g.seq < :before
  AND (:issuers IS NULL OR g.issuer IN (SELECT value FROM json_each(:issuers)))
  AND (:tenants IS NULL OR g.tenant IN (SELECT value FROM json_each(:tenants)))
  AND (:kinds IS NULL OR g.kind IN (SELECT value FROM json_each(:kinds)))
  AND (:subject IS NULL OR g.subject = :subject)
  AND (:state IS NULL OR state = :state)
ORDER BY g.seq DESC
LIMIT :limit
