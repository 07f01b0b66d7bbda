-- Locks operations whose lease is over, longest first, passing over those that somebody else is at, and reads them with
-- the time after any wait [O2]. What another worker took meanwhile is looked at again by PostgreSQL under the lock, and
-- once more by the rule that decides, and by the write.
--
-- $1 kinds (null: every kind)  $2 tenants  $3 issuers (reservations have none)  $4 rows at most
WITH locked AS MATERIALIZED (
    SELECT o.*
      FROM pawl.operations AS o
     WHERE o.status IN (10, 20)                                             -- [O2] admitted or unknown only
       AND o.lease_until <= statement_timestamp()                           -- [O2] the lease is over
       AND (o.resume_at IS NULL OR o.resume_at <= statement_timestamp())    -- [E6] nor is it paused
       AND ($1::text[] IS NULL OR o.kind = ANY ($1::text[]))
       AND ($2::text[] IS NULL OR o.tenant = ANY ($2::text[]))
       AND ($3::text[] IS NULL OR o.issuer = ANY ($3::text[]))
     ORDER BY o.lease_until
     LIMIT $4::bigint
       FOR UPDATE SKIP LOCKED                                               -- [O2] one winner each
)
SELECT clock_timestamp(),
       @session,
       @operation
  FROM locked AS o
 CROSS JOIN pawl.meta AS m
 ORDER BY o.lease_until
