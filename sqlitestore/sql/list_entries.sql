-- The log of one operation, in order [M9].
SELECT seq, key, type, at, last_at, count, fence, source, verdict, disposition,
       contradiction, mismatch_of, result_digest, reason, lease_until
FROM pawl_entries
WHERE operation_id = :operation_id
ORDER BY seq
