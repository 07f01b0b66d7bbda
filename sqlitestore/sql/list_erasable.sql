-- The settled operations of one caller whose details and results are still there.
SELECT operation_id
FROM pawl_operations
WHERE principal = :principal AND tenant = :tenant AND authority = :authority
  AND erased = 0 AND settled_at IS NOT NULL
LIMIT :limit
