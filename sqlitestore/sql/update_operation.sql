-- What a call changed of a record. It is written only over the fence and status
-- that the decision was made on: no row changed means that nothing happened [O1].
UPDATE pawl_operations
SET status = :status,
    result = CASE WHEN :status = 60 THEN coalesce(:result, x'') END, -- an empty result is one
    result_digest = :result_digest, reason = :reason, settled_at = :settled_at,
    fence = :fence, owned_since = :owned_since, lease_until = :lease_until, resume_at = :resume_at,
    takeovers = :takeovers, deferred_reason = :deferred_reason, deferred_at = :deferred_at,
    mismatch_seen = :mismatch_seen, contradiction_seen = :contradiction_seen, divergence_seen = :divergence_seen,
    observations = :observations, entries = :entries, weak_entries = :weak_entries,
    details = :details, erased = :erased, log_kept = :log_kept
WHERE operation_id = :operation_id
  AND fence = :expected_fence   -- [O1]
  AND status = :expected_status -- [O1]
