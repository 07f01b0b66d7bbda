-- A revocation claims the same key as an admission, without an operation:
-- whichever commits first wins [R1]. Who and why are kept [R4], until
-- retain_until and the purge margin are over [R3].
INSERT INTO pawl_claims (issuer, namespace, grant_id, operation_id, claimed_at, retain_until, revoked_by, reason)
VALUES (:issuer, :namespace, :grant_id, NULL, :now, :retain_until, :revoked_by, :reason)
ON CONFLICT (issuer, namespace, grant_id) DO NOTHING
RETURNING claimed_at
