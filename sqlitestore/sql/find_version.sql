-- The newest migration that was applied to this file.
SELECT coalesce(max(version_id), 0) FROM pawl_migrations WHERE is_applied
