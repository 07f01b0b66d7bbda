-- One page of records, newest first: rowid is the order of creation, also where
-- many have one time. before is the last one of the page that came before.
SELECT rowid, operation_id, issuer, namespace, grant_id, kind, details,
       authority, principal, tenant, scopes, generation, fingerprint, binding,
       created_at, submit_by, status, result, result_digest, reason, settled_at,
       fence, owned_since, lease_until, resume_at, takeovers, deferred_reason, deferred_at,
       mismatch_seen, contradiction_seen, divergence_seen, observations, entries, weak_entries, erased
FROM pawl_operations
WHERE rowid < :before
  AND (:statuses IS NULL OR status IN (SELECT value FROM json_each(:statuses)))
  AND (:kinds IS NULL OR kind IN (SELECT value FROM json_each(:kinds)))
  AND (:tenants IS NULL OR tenant IN (SELECT value FROM json_each(:tenants)))
  AND (:issuers IS NULL OR issuer IN (SELECT value FROM json_each(:issuers)))
  AND (:principal IS NULL OR (principal = :principal AND tenant = :tenant AND authority = :authority)) -- [S1]
ORDER BY rowid DESC
LIMIT :limit
