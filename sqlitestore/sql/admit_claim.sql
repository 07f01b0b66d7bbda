-- The claim of a grant's one use [A2]: it checks everything that needs the
-- store's clock and takes the grant's key, in one statement. A row back is the
-- claim; no row is a refusal, and whatever stood under the key is untouched [A10].
-- insert_operation.sql follows in the same savepoint: neither stays without the
-- other.
--
-- A token brings its own times. Of a stored grant only the key is asked: its
-- times are those of its row, and without the row nothing is offered [A2].
WITH offered (issued_at, not_before, expires_at, leeway_policy, realm) AS (
    SELECT :issued_at, :not_before, :expires_at, :leeway_policy, :realm
    WHERE :form = 1
    UNION ALL
    SELECT g.issued_at, NULL, g.expires_at, g.leeway_policy, :store_realm
    FROM pawl_grants AS g
    WHERE :form = 2
      AND g.issuer = :issuer AND g.namespace = :namespace AND g.grant_id = :grant_id -- [A5]
      AND g.form = 2
      AND g.subject = :principal AND g.tenant = :tenant                              -- for this caller [A9]
      AND (g.authority = '' OR g.authority = :authority)
      AND g.fingerprint = :fingerprint                                               -- for this intent [A9]
)
INSERT INTO pawl_claims (issuer, namespace, grant_id, operation_id, claimed_at, retain_until)
SELECT :issuer, :namespace, :grant_id, :operation_id,
       m.time_floor,
       o.expires_at + l.leeway                                                       -- kept at least until here [P1]
FROM offered AS o
JOIN pawl_meta AS m ON m.one = 1
JOIN pawl_leeways AS l ON l.version = o.leeway_policy                                -- an unknown policy admits nothing
WHERE o.realm = m.realm                                                              -- issued for this store [A1]
  AND o.issued_at >= m.issued_not_before                                             -- not before a restore [A12]
  AND o.expires_at + l.leeway > m.time_floor                                         -- the deadline, strictly [A4]
  AND o.expires_at <= m.time_floor + m.max_grant_lifetime + m.issue_skew             -- the upper bound [A4]
  AND o.expires_at - o.issued_at <= m.max_grant_lifetime
  AND o.issued_at <= m.time_floor + m.issue_skew                                     -- not issued in the future
  AND (o.not_before IS NULL OR o.not_before <= m.time_floor + l.leeway)
ON CONFLICT (issuer, namespace, grant_id) DO NOTHING                                 -- taken: whoever came first has it [R1, A10]
RETURNING claimed_at
