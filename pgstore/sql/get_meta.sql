-- Reads what the store is and what its instances agreed on [A1, A11, A12].
SELECT m.store_id, m.realm, m.epoch, m.issued_not_before,
       @policy
  FROM pawl.meta AS m
 WHERE m.only_row
