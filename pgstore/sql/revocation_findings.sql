-- Reads what a revocation is judged on: the grant's row as proof of its issue [R2], and what claims its key already.
--
-- $1 issuer  $2 namespace  $3 grant id
SELECT statement_timestamp(), m.realm, @policy,
       @session,
       g.expires_at, g.leeway_policy,
       c.issuer IS NOT NULL, c.operation_id
  FROM pawl.meta AS m
  LEFT JOIN pawl.grants AS g ON g.issuer = $1::text AND g.namespace = $2::text AND g.grant_id = $3::text
  LEFT JOIN pawl.claims AS c ON c.issuer = $1::text AND c.namespace = $2::text AND c.grant_id = $3::text
