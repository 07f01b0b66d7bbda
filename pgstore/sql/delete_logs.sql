-- Deletes the whole logs of operations that are about to go. A statement of its own after the lock, so that it sees every
-- entry that was written before.
--
-- $1 operation ids
DELETE FROM pawl.entries AS e
 WHERE e.operation_id = ANY ($1::uuid[])
