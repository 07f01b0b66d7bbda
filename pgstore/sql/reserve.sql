-- Records an operation under the id that an idempotency key stands for [B1, B2]. One row is the reservation; zero rows
-- mean that the key is reserved already, or that the session may not be used, and findings.sql tells which.
--
-- $1 operation id  $2 kind  $3 details  $4 authority  $5 principal  $6 tenant  $7 generation  $8 scopes
-- $9 fingerprint  $10 binding  $11 lease  $12 submission window  $13 store id
WITH born AS MATERIALIZED (
    SELECT clock_timestamp() AS at
      FROM pawl.meta AS m
     WHERE m.only_row AND m.store_id = $13::uuid          -- [A1] this store and no other
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
)
INSERT INTO pawl.operations (
       id, kind, details, authority, principal, tenant, generation, scopes,
       fingerprint, binding, created_at, submit_by, owned_since, lease_until)
SELECT $1::uuid, $2::text, $3::text, $4::text, $5::text, $6::text, $7::text,
       $8::text[], $9::bytea, $10::bytea, b.at, b.at + $12::interval, b.at, b.at + $11::interval
  FROM born AS b
ON CONFLICT (id) DO NOTHING                               -- [B1] the first lock stands for ever
RETURNING created_at, submit_by, lease_until
