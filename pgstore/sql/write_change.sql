-- Writes a decided change to a record whose row is locked, with its log entries: all of it or nothing [M1]. The fence and
-- the status that the decision was made on are restated; where they do not hold, nothing happens, no entry included, and
-- the count is 0 [O1].
--
-- $1 operation id  $2 fence before  $3 status before
-- $4 status  $5 result (null unless it becomes succeeded)  $6 result digest  $7 reason  $8 settled at
-- $9 fence  $10 owned since  $11 lease until  $12 resume at  $13 takeovers  $14 deferred reason  $15 deferred at
-- $16 mismatch  $17 contradiction  $18 divergence  $19 observations  $20 entries  $21 weak entries
-- $22 time of the log entries (null: none)
-- the entries: $23 key  $24 seq  $25 type  $26 fence  $27 source  $28 verdict  $29 disposition  $30 contradiction
-- $31 mismatch of  $32 result digest  $33 reason  $34 lease until
WITH changed AS (
    UPDATE pawl.operations AS o
       SET status = $4::smallint,
           result = coalesce(o.result, $5::bytea),                          -- a result never changes or clears
           result_digest = coalesce(o.result_digest, $6::bytea),
           reason = $7::text,
           settled_at = $8::timestamptz,
           fence = $9::bigint,
           owned_since = $10::timestamptz,
           lease_until = $11::timestamptz,
           resume_at = $12::timestamptz,
           takeovers = $13::integer,
           deferred_reason = $14::text,
           deferred_at = $15::timestamptz,
           mismatch_seen = o.mismatch_seen OR $16::boolean,                 -- [M7] a flag never clears
           contradiction_seen = o.contradiction_seen OR $17::boolean,
           divergence_seen = o.divergence_seen OR $18::boolean,
           observations = $19::bigint,
           entries = $20::bigint,
           weak_entries = $21::bigint,
           log_due_from = CASE WHEN $8::timestamptz IS NULL THEN NULL       -- [P3] retention counts from settlement
                               WHEN o.settled_at IS NULL THEN $8::timestamptz
                               ELSE coalesce(o.log_due_from, $22::timestamptz) END,
           result_due_from = CASE WHEN o.result IS NULL AND octet_length($5::bytea) > 0 THEN $8::timestamptz
                                  ELSE o.result_due_from END
     WHERE o.id = $1::uuid
       AND o.fence = $2::bigint                                             -- [O1] the owner it was decided for
       AND o.status = $3::smallint                                          -- [O1] the status it was decided on
    RETURNING o.id
), logged AS (
    INSERT INTO pawl.entries AS e (
           operation_id, key, seq, type, at, last_at, count, fence, source, verdict, disposition, contradiction, mismatch_of,
           result_digest, reason, lease_until)
    SELECT c.id, n.key, n.seq, n.type, $22::timestamptz, $22::timestamptz, 1, n.fence, n.source, n.verdict, n.disposition,
           n.contradiction, n.mismatch_of, n.result_digest, n.reason, n.lease_until
      FROM changed AS c
     CROSS JOIN unnest($23::text[], $24::bigint[], $25::text[], $26::bigint[], $27::text[], $28::smallint[], $29::text[],
                       $30::boolean[], $31::text[], $32::bytea[], $33::text[], $34::timestamptz[])
           AS n (key, seq, type, fence, source, verdict, disposition, contradiction, mismatch_of, result_digest, reason,
                 lease_until)
    ON CONFLICT (operation_id, key) DO UPDATE                               -- [M6] equal statements are counted
       SET count = e.count + 1, last_at = excluded.last_at
)
SELECT count(*) FROM changed
