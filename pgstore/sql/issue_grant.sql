-- Writes the immutable row of an issue, on the store's clock, whole seconds [A2]. The same request again writes nothing:
-- zero rows, and the row of the first is read instead. A lifetime over the policy's or an unknown leeway policy writes
-- nothing either.
--
-- $1 issuer  $2 namespace  $3 grant id  $4 form  $5 request id  $6 request digest  $7 subject  $8 tenant  $9 authority
-- $10 kind  $11 details  $12 fingerprint  $13 lifetime  $14 leeway policy
INSERT INTO pawl.grants AS g (
       issuer, namespace, grant_id, form, request_id, request_digest, subject, tenant, authority, kind, details,
       fingerprint, issued_at, expires_at, leeway_policy)
SELECT $1::text, $2::text, $3::text, $4::smallint, $5::text, $6::bytea, $7::text, $8::text, $9::text, $10::text, $11::text,
       $12::bytea, s.issued_at, s.issued_at + $13::interval, l.version
  FROM pawl.meta AS m
  JOIN pawl.leeways AS l ON l.version = $14::text
 CROSS JOIN (SELECT to_timestamp(floor(extract(epoch FROM statement_timestamp()))) AS issued_at) AS s
 WHERE $13::interval <= m.max_grant_lifetime              -- [A4] no grant lives longer than the policy says
ON CONFLICT (issuer, request_id) DO NOTHING               -- one grant for a request
RETURNING @grant
