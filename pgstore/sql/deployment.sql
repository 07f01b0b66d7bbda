-- Reads the facts of the deployment that the promise rests on. The catalogues answer everybody; what only a monitoring
-- role may see is left out rather than guessed.
--
-- $1 the schema's name
SELECT current_setting('server_version'),
       clock_timestamp(),
       current_setting('fsync') = 'on',
       current_setting('full_page_writes') = 'on',
       current_setting('server_encoding'),
       current_setting('TimeZone'),
       (SELECT coalesce(array_to_json(array_agg(c ORDER BY c)), '[]')::text           -- what the pins are over
          FROM pg_db_role_setting AS r
         CROSS JOIN unnest(r.setconfig) AS c
         WHERE lower(split_part(c, '=', 1)) IN (                                         -- what others set may be a secret [S2]
                   'client_min_messages', 'default_transaction_isolation', 'default_transaction_read_only',
                   'synchronous_commit', 'lock_timeout', 'search_path', 'timezone', 'datestyle', 'jit', 'plan_cache_mode',
                   'enable_seqscan', 'statement_timeout', 'transaction_timeout', 'idle_in_transaction_session_timeout')
           AND r.setrole IN (0, (SELECT a.oid FROM pg_roles AS a WHERE a.rolname = session_user))
           AND r.setdatabase IN (0, (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database()))),
       pg_backend_pid(),
       s.version, s.min_reader,
       m.realm, m.epoch, m.issued_not_before,
       (SELECT count(*) FROM pg_class AS t                -- a crash empties an unlogged table
          JOIN pg_namespace AS n ON n.oid = t.relnamespace
         WHERE n.nspname = $1::text AND t.relkind = 'r' AND t.relpersistence <> 'p'
           AND t.relname IN ('meta', 'secrets', 'leeways', 'grants', 'claims', 'operations', 'entries')),
       7 - (SELECT count(*) FROM pg_class AS t
              JOIN pg_namespace AS n ON n.oid = t.relnamespace
             WHERE n.nspname = $1::text AND t.relkind = 'r'
               AND t.relname IN ('meta', 'secrets', 'leeways', 'grants', 'claims', 'operations', 'entries')),
       (SELECT coalesce(array_to_json(array_agg(i.name ORDER BY i.name)), '[]')::text
          FROM (SELECT x.relname AS name                  -- the unique rules, with the columns they are for
                  FROM pg_index AS u
                  JOIN pg_class AS x ON x.oid = u.indexrelid
                  JOIN pg_class AS t ON t.oid = u.indrelid
                  JOIN pg_namespace AS n ON n.oid = t.relnamespace
                 WHERE n.nspname = $1::text AND u.indisunique AND u.indisvalid AND u.indisready AND u.indimmediate
                   AND ((x.relname = 'claims_key' AND t.relname = 'claims' AND u.indpred IS NULL
                         AND pg_get_indexdef(u.indexrelid) LIKE '%(issuer, namespace, grant_id)')
                     OR (x.relname = 'operations_pkey' AND t.relname = 'operations' AND u.indpred IS NULL
                         AND pg_get_indexdef(u.indexrelid) LIKE '%(id)')
                     OR (x.relname = 'operations_grant' AND t.relname = 'operations'
                         AND pg_get_indexdef(u.indexrelid) LIKE '%(issuer, namespace, grant_id) WHERE (issuer IS NOT NULL)')
                     OR (x.relname = 'grants_key' AND t.relname = 'grants' AND u.indpred IS NULL
                         AND pg_get_indexdef(u.indexrelid) LIKE '%(issuer, namespace, grant_id)')
                     OR (x.relname = 'grants_request' AND t.relname = 'grants' AND u.indpred IS NULL
                         AND pg_get_indexdef(u.indexrelid) LIKE '%(issuer, request_id)'))) AS i),
       @policy,
       @session
  FROM pawl.meta AS m
 CROSS JOIN pawl.schema_state AS s
 WHERE m.only_row
