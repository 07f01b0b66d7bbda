-- What the engine finds wrong in this package's own tables and their indexes; no
-- row is nothing. A caller's tables are the caller's affair.
SELECT q.quick_check
FROM sqlite_schema AS m
JOIN pragma_quick_check(m.name) AS q
WHERE m.type = 'table'
  AND m.name IN ('pawl_meta', 'pawl_leeways', 'pawl_grants', 'pawl_claims', 'pawl_operations', 'pawl_entries')
  AND q.quick_check <> 'ok'
