-- Claims a token's one use and records its operation, both or neither, in one statement [A2]. Nobody is asked before and
-- nothing is read after: one row is the admission, zero rows are none, and findings.sql tells why.
--
-- A competitor in flight on the same key is waited for: its commit leaves zero rows here, its rollback lets this one
-- through. Read Committed makes that so; under any other isolation the statement admits nothing [A11].
--
-- $1 issuer  $2 namespace  $3 grant id  $4 realm  $5 leeway policy  $6 issued at  $7 not before (or null)  $8 expires at
-- $9 operation id  $10 kind  $11 details  $12 authority  $13 principal  $14 tenant  $15 generation  $16 scopes
-- $17 fingerprint  $18 binding  $19 lease  $20 submission window  $21 store id
WITH store AS (
    SELECT m.realm, m.issued_not_before, m.max_grant_lifetime, m.issue_skew, l.leeway
      FROM pawl.meta AS m
      JOIN pawl.leeways AS l ON l.version = $5::text      -- [T1] the store's own leeway of the grant's policy version
     WHERE m.only_row AND m.store_id = $21::uuid          -- [A1] this store and no other
       -- session: begin
       AND NOT pg_is_in_recovery()                        -- [A1] the primary, which all instances share
       AND current_setting('transaction_isolation') = 'read committed'       -- [A11] a loser gets zero rows, not an error
       AND current_setting('client_min_messages')         -- [A3] the notice of a cancelled wait for a standby arrives
           IN ('debug5', 'debug4', 'debug3', 'debug2', 'debug1', 'log', 'notice', 'warning')
       AND current_setting('synchronous_commit')          -- [A3] the commit is durable before it is acknowledged
           = ANY (CASE WHEN m.replicated THEN '{on,remote_apply}'
                       ELSE '{on,remote_apply,remote_write,local}' END::text[])
       AND (NOT m.replicated OR current_setting('synchronous_standby_names') <> '')  -- [A3] failover is promised
       AND CASE WHEN current_setting('server_version_num')::integer >= 170000        -- [P1] the bound is in force
                THEN current_setting('transaction_timeout', true)
                ELSE current_setting('statement_timeout') END::interval
           BETWEEN interval '1 millisecond' AND m.admission_bound
       -- session: end
), claim AS (
    INSERT INTO pawl.claims (issuer, namespace, grant_id, operation_id, claimed_at, retain_until)
    SELECT $1::text, $2::text, $3::text, $9::uuid, statement_timestamp(),
           $8::timestamptz + s.leeway                     -- [P1] retained until no admission can succeed any more
      FROM store AS s
     WHERE s.realm = $4::text                             -- [A1] the grant is for this store
       AND (s.issued_not_before IS NULL OR $6::timestamptz >= s.issued_not_before)            -- [A12] issued since the epoch
       AND $8::timestamptz + s.leeway > statement_timestamp()                                 -- [A4] the deadline, strictly
       AND $8::timestamptz <= statement_timestamp() + s.max_grant_lifetime + s.issue_skew     -- [A4] the upper bound
       AND $8::timestamptz <= $6::timestamptz + s.max_grant_lifetime                          -- [A4] and the lifetime
       AND $6::timestamptz <= statement_timestamp() + s.issue_skew                            -- [A4] issued already
       AND ($7::timestamptz IS NULL OR $7::timestamptz <= statement_timestamp() + s.leeway)   -- [A4] valid already
    ON CONFLICT (issuer, namespace, grant_id) DO NOTHING  -- [A2, A10] one claim for a key; a loser changes nothing
    RETURNING issuer, namespace, grant_id
), born AS MATERIALIZED (
    SELECT c.issuer, c.namespace, c.grant_id, clock_timestamp() AS at    -- [O4] the lease runs from after any wait
      FROM claim AS c
)
INSERT INTO pawl.operations (
       id, issuer, namespace, grant_id, kind, details, authority, principal, tenant, generation, scopes,
       fingerprint, binding, created_at, submit_by, owned_since, lease_until)
SELECT $9::uuid, b.issuer, b.namespace, b.grant_id, $10::text, $11::text, $12::text, $13::text, $14::text, $15::text,
       $16::text[], $17::bytea, $18::bytea, b.at, b.at + $20::interval, b.at, b.at + $19::interval
  FROM born AS b                                          -- [A2] no operation without its claim
RETURNING created_at, submit_by, lease_until
