-- One line of an operation's log, in the transaction of the change it tells of
-- [M1]. An equal statement is counted, not repeated [M6].
INSERT INTO pawl_entries (
    operation_id, seq, key, type, at, last_at, count, fence, source, verdict, disposition,
    contradiction, mismatch_of, result_digest, reason, lease_until
) VALUES (
    :operation_id, :seq, :key, :type, :at, :at, 1, :fence, :source, :verdict, :disposition,
    :contradiction, :mismatch_of, :result_digest, :reason, :lease_until
)
ON CONFLICT (operation_id, key) DO UPDATE SET count = count + 1, last_at = excluded.last_at
