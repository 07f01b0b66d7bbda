       o.id, o.issuer, o.namespace, o.grant_id, o.kind, o.details,
       o.authority, o.principal, o.tenant, o.generation, array_to_json(o.scopes)::text,
       o.fingerprint, o.binding, o.created_at, o.submit_by,
       o.status, o.result, o.result_digest, o.reason, o.settled_at,
       o.fence, o.owned_since, o.lease_until, o.resume_at, o.takeovers, o.deferred_reason, o.deferred_at,
       o.mismatch_seen, o.contradiction_seen, o.divergence_seen,
       o.observations, o.entries, o.weak_entries, o.erased
