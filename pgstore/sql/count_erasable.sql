-- Tells what an erasure left: operations that are not settled yet, and whether there is another batch.
--
-- $1 authority  $2 principal  $3 tenant
SELECT count(*) FILTER (WHERE o.settled_at IS NULL),
       count(*) FILTER (WHERE o.settled_at IS NOT NULL) > 0
  FROM pawl.operations AS o
 WHERE o.authority = $1::text AND o.principal = $2::text AND o.tenant = $3::text
   AND NOT o.erased
