-- Entries of one log past their retention. What purges and erasures left behind
-- stays, so that a timeline says what is missing [M9].
DELETE FROM pawl_entries
WHERE operation_id = :operation_id
  AND seq IN (
      SELECT seq FROM pawl_entries
      WHERE operation_id = :operation_id AND last_at < :cutoff AND type NOT IN ('purge', 'erasure')
      ORDER BY seq
      LIMIT :limit -- [P4]
  )
