-- Sets how long a revocation is kept at least: from the time of the write, for the longest that any grant of the key which
-- was issued by then may live. A trusted expiry does not shorten that: one key may have two expiries. A statement of its
-- own, in the transaction that wrote the row, because the insert's time is that of before a wait for the key [R3].
--
-- $1 issuer  $2 namespace  $3 grant id
UPDATE pawl.claims AS c
   SET claimed_at = s.now,
       retain_until = greatest(c.retain_until,
                               s.now + m.max_grant_lifetime + m.issue_skew + (SELECT max(l.leeway) FROM pawl.leeways AS l))
  FROM pawl.meta AS m
 CROSS JOIN (SELECT clock_timestamp() AS now) AS s
 WHERE c.issuer = $1::text AND c.namespace = $2::text AND c.grant_id = $3::text
   AND c.operation_id IS NULL
