-- One record. Whoever reads it in order to decide holds the write lock [O1].
SELECT rowid, operation_id, issuer, namespace, grant_id, kind, details,
       authority, principal, tenant, scopes, generation, fingerprint, binding,
       created_at, submit_by, status, result, result_digest, reason, settled_at,
       fence, owned_since, lease_until, resume_at, takeovers, deferred_reason, deferred_at,
       mismatch_seen, contradiction_seen, divergence_seen, observations, entries, weak_entries, erased
FROM pawl_operations
WHERE operation_id = :operation_id
