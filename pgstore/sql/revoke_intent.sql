-- Claims the keys of all unused, unexpired stored grants of one subject for one intent, in the order of their keys, so
-- that two of these never wait for each other in a ring [R1].
--
-- $1 issuer  $2 subject  $3 tenant  $4 fingerprint  $5 who  $6 why
INSERT INTO pawl.claims (issuer, namespace, grant_id, claimed_at, retain_until, revoked_by, reason)
SELECT g.issuer, g.namespace, g.grant_id, clock_timestamp(),
       greatest(g.expires_at + l.leeway, clock_timestamp() + m.max_grant_lifetime + m.issue_skew
                + (SELECT max(every.leeway) FROM pawl.leeways AS every)),                           -- [R3]
       $5::text, $6::text
  FROM pawl.grants AS g
  JOIN pawl.leeways AS l ON l.version = g.leeway_policy
  JOIN pawl.meta AS m ON m.only_row
 WHERE g.form = 2
   AND g.issuer = $1::text AND g.subject = $2::text AND g.tenant = $3::text AND g.fingerprint = $4::bytea
   AND g.expires_at + l.leeway > statement_timestamp()
 ORDER BY g.issuer, g.namespace, g.grant_id
ON CONFLICT (issuer, namespace, grant_id) DO NOTHING
RETURNING grant_id
