-- Reads all that an admission is judged on, in one snapshot, to explain zero rows or a violated rule [A2, A7, A8]. It
-- decides nothing: by its time the admission has been decided.
--
-- $1 issuer (null for a reservation)  $2 namespace  $3 grant id  $4 operation id
SELECT statement_timestamp(),
       m.realm, m.issued_not_before,
       @policy,
       @session,
       @grant,
       c.issuer IS NOT NULL, c.operation_id,
       o.id IS NOT NULL, @operation
  FROM pawl.meta AS m
  LEFT JOIN pawl.grants AS g
    ON g.issuer = $1::text AND g.namespace = $2::text AND g.grant_id = $3::text
  LEFT JOIN pawl.claims AS c
    ON c.issuer = $1::text AND c.namespace = $2::text AND c.grant_id = $3::text
  LEFT JOIN pawl.operations AS o ON o.id = $4::uuid
 WHERE m.only_row
