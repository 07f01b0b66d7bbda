-- Reads one page of grants with what became of each, newest first. A null filter wants everything.
--
-- $1 issuers  $2 tenants  $3 kinds  $4 subject  $5 state  $6 seq of the last row of the page before  $7 rows at most
SELECT g.seq, m.realm, g.request_id, c.issuer IS NOT NULL, c.operation_id, c.claimed_at, c.revoked_by, c.reason,
       g.expires_at + l.leeway <= statement_timestamp(),
       @grant
  FROM pawl.grants AS g
  JOIN pawl.leeways AS l ON l.version = g.leeway_policy
 CROSS JOIN pawl.meta AS m
  LEFT JOIN pawl.claims AS c USING (issuer, namespace, grant_id)
 WHERE ($1::text[] IS NULL OR g.issuer = ANY ($1::text[]))
   AND ($2::text[] IS NULL OR g.tenant = ANY ($2::text[]))
   AND ($3::text[] IS NULL OR g.kind = ANY ($3::text[]))
   AND ($4::text IS NULL OR g.subject = $4::text)
   AND ($5::text IS NULL OR $5::text = CASE
        WHEN c.operation_id IS NOT NULL THEN 'used'
        WHEN c.issuer IS NOT NULL THEN 'revoked'
        WHEN g.expires_at + l.leeway <= statement_timestamp() THEN 'expired'
        ELSE 'issued' END)
   AND ($6::bigint IS NULL OR g.seq < $6::bigint)
 ORDER BY g.seq DESC
 LIMIT $7::bigint
