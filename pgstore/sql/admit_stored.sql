-- Claims a stored grant's one use and records its operation, both or neither, in one statement [A2]. The grant's row is
-- the immutable record of its issue and must be there; the claim goes to the same table and key as a token's. One row is
-- the admission, zero rows are none, and findings.sql tells why.
--
-- $1 issuer  $2 namespace  $3 grant id
-- $4 operation id  $5 kind  $6 details  $7 authority  $8 principal  $9 tenant  $10 generation  $11 scopes
-- $12 fingerprint  $13 binding  $14 lease  $15 submission window  $16 store id
WITH store AS (
    SELECT m.issued_not_before, m.max_grant_lifetime, m.issue_skew
      FROM pawl.meta AS m
     WHERE m.only_row AND m.store_id = $16::uuid          -- [A1] this store and no other
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
    SELECT g.issuer, g.namespace, g.grant_id, $4::uuid, statement_timestamp(),
           g.expires_at + l.leeway                        -- [P1] retained until no admission can succeed any more
      FROM store AS s
      JOIN pawl.grants AS g
        ON g.issuer = $1::text AND g.namespace = $2::text AND g.grant_id = $3::text      -- [A2] no row, no admission
      JOIN pawl.leeways AS l ON l.version = g.leeway_policy  -- [T1] the leeway of the version it was issued under
     WHERE g.form = 2
       AND g.subject = $8::text AND g.tenant = $9::text      -- [A5] for this caller
       AND (g.authority = '' OR g.authority = $7::text)
       AND g.fingerprint = $12::bytea                        -- [A5] and this intent
       AND (s.issued_not_before IS NULL OR g.issued_at >= s.issued_not_before)                -- [A12] issued since the epoch
       AND g.expires_at + l.leeway > statement_timestamp()                                    -- [A4] the deadline, strictly
       AND g.expires_at <= statement_timestamp() + s.max_grant_lifetime + s.issue_skew        -- [A4] the upper bound
       AND g.expires_at <= g.issued_at + s.max_grant_lifetime                                 -- [A4] and the lifetime
       AND g.issued_at <= statement_timestamp() + s.issue_skew                                -- [A4] issued already
    ON CONFLICT (issuer, namespace, grant_id) DO NOTHING  -- [A2, A10] one claim for a key; a loser changes nothing
    RETURNING issuer, namespace, grant_id
), born AS MATERIALIZED (
    SELECT c.issuer, c.namespace, c.grant_id, clock_timestamp() AS at    -- [O4] the lease runs from after any wait
      FROM claim AS c
)
INSERT INTO pawl.operations (
       id, issuer, namespace, grant_id, kind, details, authority, principal, tenant, generation, scopes,
       fingerprint, binding, created_at, submit_by, owned_since, lease_until)
SELECT $4::uuid, b.issuer, b.namespace, b.grant_id, $5::text, $6::text, $7::text, $8::text, $9::text, $10::text,
       $11::text[], $12::bytea, $13::bytea, b.at, b.at + $15::interval, b.at, b.at + $14::interval
  FROM born AS b                                          -- [A2] no operation without its claim
RETURNING created_at, submit_by, lease_until
