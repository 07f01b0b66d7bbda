-- Reads what an earlier request wrote, and the policy that a new one is held to.
--
-- $1 issuer  $2 request id
SELECT @policy,
       g.request_digest,
       @grant
  FROM pawl.meta AS m
  LEFT JOIN pawl.grants AS g ON g.issuer = $1::text AND g.request_id = $2::text
