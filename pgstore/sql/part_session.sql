       m.store_id, m.replicated, (extract(epoch FROM m.admission_bound) * 1000000)::bigint,
       pg_is_in_recovery(),
       current_setting('transaction_isolation'),
       current_setting('client_min_messages'),
       current_setting('synchronous_commit'),
       current_setting('synchronous_standby_names'),
       (extract(epoch FROM CASE WHEN current_setting('server_version_num')::integer >= 170000
                                THEN current_setting('transaction_timeout', true)
                                ELSE current_setting('statement_timeout') END::interval) * 1000000)::bigint
