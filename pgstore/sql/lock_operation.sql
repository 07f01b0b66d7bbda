-- Locks one operation's row for a write and reads it, with the time after the wait for the lock: the row is locked in a
-- step of its own, because a time taken beside FOR UPDATE would be that of before the wait [O2, O3].
--
-- $1 operation id
WITH locked AS MATERIALIZED (
    SELECT o.* FROM pawl.operations AS o WHERE o.id = $1::uuid FOR UPDATE
)
SELECT clock_timestamp(),
       @session,
       @operation
  FROM locked AS o
 CROSS JOIN pawl.meta AS m
