-- Operations that are not settled although they are older than every retention:
-- they are alarmed and never deleted [P3].
SELECT (SELECT count(*) FROM pawl_operations WHERE status IN (10, 20) AND created_at < :cutoff)
     + (SELECT count(*) FROM pawl_operations WHERE status IN (30, 40) AND created_at < :cutoff)
