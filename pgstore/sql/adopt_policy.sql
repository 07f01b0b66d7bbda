-- Replaces the agreed policy: an operator's deliberate act while no instance runs [A11].
--
-- $1 replicated  $2 admission bound  $3 purge margin  $4 maximum lifetime  $5 issue skew  $6 key lifetime
UPDATE pawl.meta AS m
   SET replicated = $1::boolean, admission_bound = $2::interval, purge_margin = $3::interval,
       max_grant_lifetime = $4::interval, issue_skew = $5::interval, key_lifetime = $6::interval
 WHERE m.only_row
