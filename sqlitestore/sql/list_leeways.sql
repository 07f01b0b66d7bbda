-- The admission leeways by policy version [A4].
SELECT version, leeway FROM pawl_leeways
