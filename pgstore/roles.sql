-- Rights for those who let no process do more than it must. Each role may read all but the key of owner tokens, and
-- what stands below it. Give a server's login those that it needs: GRANT pawl_admission, pawl_recovery TO server;
-- The tables' owner, who runs pawl migrate, needs none of them.

CREATE ROLE pawl_reader NOLOGIN;      -- reads: auditors
CREATE ROLE pawl_admission NOLOGIN;   -- admits and reserves
CREATE ROLE pawl_recovery NOLOGIN;    -- records and settles outcomes, takes over: who admits nearly always needs it too
CREATE ROLE pawl_issue NOLOGIN;       -- issues and revokes grants
CREATE ROLE pawl_purge NOLOGIN;       -- deletes what retention no longer needs
CREATE ROLE pawl_keeper NOLOGIN;      -- raises the epoch and erases

GRANT USAGE ON SCHEMA pawl TO pawl_reader;
GRANT SELECT ON pawl.schema_state, pawl.meta, pawl.leeways, pawl.grants, pawl.claims, pawl.operations, pawl.entries
    TO pawl_reader;
GRANT pawl_reader TO pawl_admission, pawl_recovery, pawl_issue, pawl_purge, pawl_keeper;

GRANT SELECT ON pawl.secrets TO pawl_admission, pawl_recovery;
GRANT INSERT ON pawl.claims, pawl.operations TO pawl_admission;

-- Only the columns that may ever change: the lock, the caller and the deadline are beyond this role's reach.
GRANT UPDATE (status, result, result_digest, reason, settled_at, fence, owned_since, lease_until, resume_at, takeovers,
              deferred_reason, deferred_at, mismatch_seen, contradiction_seen, divergence_seen, observations, entries,
              weak_entries, log_due_from, result_due_from) ON pawl.operations TO pawl_recovery;
GRANT INSERT, UPDATE (count, last_at) ON pawl.entries TO pawl_recovery;

GRANT INSERT ON pawl.grants, pawl.claims TO pawl_issue;
GRANT UPDATE (claimed_at, retain_until) ON pawl.claims TO pawl_issue;

GRANT DELETE ON pawl.claims, pawl.grants, pawl.operations, pawl.entries TO pawl_purge;
GRANT UPDATE (result, entries, log_due_from, result_due_from) ON pawl.operations TO pawl_purge;
GRANT INSERT ON pawl.entries TO pawl_purge;

GRANT UPDATE (epoch, issued_not_before) ON pawl.meta TO pawl_keeper;
GRANT UPDATE (details, erased, result, entries, result_due_from) ON pawl.operations TO pawl_keeper;
GRANT UPDATE (details) ON pawl.grants TO pawl_keeper;
GRANT INSERT ON pawl.entries TO pawl_keeper;
