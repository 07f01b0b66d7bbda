-- Reads one operation. Execution never rests on it [A3].
--
-- $1 operation id
SELECT @operation
  FROM pawl.operations AS o
 WHERE o.id = $1::uuid
