-- The operation that a grant key allowed, if there is one [A7].
SELECT operation_id
FROM pawl_operations
WHERE issuer = :issuer AND namespace = :namespace AND grant_id = :grant_id -- [A5]
