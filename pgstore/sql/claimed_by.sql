-- Reads who claims a key, after an insert that found it claimed.
--
-- $1 issuer  $2 namespace  $3 grant id
SELECT c.operation_id
  FROM pawl.claims AS c
 WHERE c.issuer = $1::text AND c.namespace = $2::text AND c.grant_id = $3::text
