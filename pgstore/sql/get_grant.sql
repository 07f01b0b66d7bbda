-- Reads one grant's row with what became of it.
--
-- $1 issuer  $2 namespace  $3 grant id
SELECT g.seq, m.realm, g.request_id, c.issuer IS NOT NULL, c.operation_id, c.claimed_at, c.revoked_by, c.reason,
       g.expires_at + l.leeway <= statement_timestamp(),
       @grant
  FROM pawl.grants AS g
  JOIN pawl.leeways AS l ON l.version = g.leeway_policy
 CROSS JOIN pawl.meta AS m
  LEFT JOIN pawl.claims AS c USING (issuer, namespace, grant_id)
 WHERE g.issuer = $1::text AND g.namespace = $2::text AND g.grant_id = $3::text
