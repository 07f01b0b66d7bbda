-- Reads one page of operations, newest first. A null filter wants everything.
--
-- $1 statuses  $2 kinds  $3 tenants  $4 issuers (reservations have none)  $5 authority, $6 principal, $7 tenant of one caller
-- $8, $9 created_at and id of the last row of the page before  $10 rows at most
SELECT @operation
  FROM pawl.operations AS o
 WHERE ($1::smallint[] IS NULL OR o.status = ANY ($1::smallint[]))
   AND ($2::text[] IS NULL OR o.kind = ANY ($2::text[]))
   AND ($3::text[] IS NULL OR o.tenant = ANY ($3::text[]))
   AND ($4::text[] IS NULL OR o.issuer = ANY ($4::text[]))
   AND ($6::text IS NULL OR (o.authority = $5::text AND o.principal = $6::text AND o.tenant = $7::text))
   AND ($8::timestamptz IS NULL OR (o.created_at, o.id) < ($8::timestamptz, $9::uuid))
 ORDER BY o.created_at DESC, o.id DESC
 LIMIT $10::bigint
