-- What recovery may take over [O2]: admitted or unknown, the lease over, and not
-- before the time recovery paces itself to [E6]; those whose lease ended first
-- come first. The caller holds the write lock from here until the new owner is
-- written, so that each has one winner.
SELECT rowid, operation_id, issuer, namespace, grant_id, kind, details,
       authority, principal, tenant, scopes, generation, fingerprint, binding,
       created_at, submit_by, status, result, result_digest, reason, settled_at,
       fence, owned_since, lease_until, resume_at, takeovers, deferred_reason, deferred_at,
       mismatch_seen, contradiction_seen, divergence_seen, observations, entries, weak_entries, erased
FROM pawl_operations INDEXED BY pawl_operations_open
WHERE status IN (10, 20)
  AND lease_until <= :now
  AND (resume_at IS NULL OR resume_at <= :now)
  AND (:other_kinds = 1 OR kind IN (SELECT value FROM json_each(:kinds)))
  AND (:tenants IS NULL OR tenant IN (SELECT value FROM json_each(:tenants))) -- a credential's limits
  AND (:issuers IS NULL OR issuer IN (SELECT value FROM json_each(:issuers))) -- a reservation has none and is left out
ORDER BY lease_until, created_at, rowid
LIMIT :limit
