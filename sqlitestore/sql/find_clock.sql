-- The engine's clock beside the floor under it [P1].
SELECT coalesce(:clock, CAST(unixepoch('subsec') * 1000 + 0.5 AS INTEGER) * 1000), time_floor
FROM pawl_meta
WHERE one = 1
