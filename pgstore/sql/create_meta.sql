-- Writes what the store is, once: whoever comes second changes nothing [A1].
--
-- $1 store id  $2 realm  $3 replicated  $4 admission bound  $5 purge margin  $6 maximum lifetime  $7 issue skew
-- $8 key lifetime
INSERT INTO pawl.meta (
       store_id, realm, created_at, replicated, admission_bound, purge_margin, max_grant_lifetime, issue_skew, key_lifetime)
VALUES ($1::uuid, $2::text, clock_timestamp(), $3::boolean, $4::interval, $5::interval, $6::interval, $7::interval,
        $8::interval)
ON CONFLICT (only_row) DO NOTHING
