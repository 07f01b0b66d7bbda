-- Refuses from now on every grant issued before this moment, the issuers' skew included [A12].
UPDATE pawl.meta AS m
   SET epoch = m.epoch + 1,
       issued_not_before = greatest(m.issued_not_before, clock_timestamp() + m.issue_skew)
 WHERE m.only_row
RETURNING m.epoch, m.issued_not_before
