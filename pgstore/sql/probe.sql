-- Asks a server what it is, before anything is assumed of it or pinned.
SELECT current_setting('server_version_num')::integer,
       pg_backend_pid(),
       pg_is_in_recovery(),
       current_setting('server_encoding'),
       to_regclass('pawl.schema_state') IS NOT NULL
