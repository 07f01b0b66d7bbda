-- The definitions of this package's tables, indexes and triggers, without those
-- that the engine makes by itself.
SELECT name, sql
FROM sqlite_schema
WHERE name GLOB 'pawl_*' AND sql IS NOT NULL
