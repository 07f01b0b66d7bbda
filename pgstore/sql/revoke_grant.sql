-- Claims a grant's key without an operation. It contends with an admission for the same key: whichever commits first
-- wins, and zero rows mean that the other did [R1].
--
-- $1 issuer  $2 namespace  $3 grant id  $4 retained until  $5 who  $6 why
INSERT INTO pawl.claims (issuer, namespace, grant_id, claimed_at, retain_until, revoked_by, reason)
VALUES ($1::text, $2::text, $3::text, clock_timestamp(), $4::timestamptz, $5::text, $6::text)       -- [R4] who and why are kept
ON CONFLICT (issuer, namespace, grant_id) DO NOTHING
RETURNING claimed_at
