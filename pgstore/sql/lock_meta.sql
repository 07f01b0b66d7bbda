-- As get_meta.sql, and keeps every other instance from changing it until the transaction ends.
SELECT m.store_id, m.realm, m.epoch, m.issued_not_before,
       @policy
  FROM pawl.meta AS m
 WHERE m.only_row
   FOR UPDATE
