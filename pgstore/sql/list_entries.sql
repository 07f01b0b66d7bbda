-- Reads an operation's log in order.
--
-- $1 operation id
SELECT e.key, e.seq, e.type, e.at, e.last_at, e.count, e.fence, e.source, e.verdict, e.disposition, e.contradiction,
       e.mismatch_of, e.result_digest, e.reason, e.lease_until
  FROM pawl.entries AS e
 WHERE e.operation_id = $1::uuid
 ORDER BY e.seq
