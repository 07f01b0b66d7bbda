-- The policy that an operator adopted, or the revision after a new leeway [A11].
UPDATE pawl_meta
SET policy_revision = policy_revision + 1,
    admission_bound = :admission_bound, purge_margin = :purge_margin, max_grant_lifetime = :max_grant_lifetime,
    issue_skew = :issue_skew, key_lifetime = :key_lifetime
WHERE one = 1
