-- A new store: its id, realm and secret are written here and never again [A1].
INSERT INTO pawl_meta (
    one, store_id, realm, token_secret, created_at, time_floor,
    admission_bound, purge_margin, max_grant_lifetime, issue_skew, key_lifetime
)
SELECT 1, :store_id, :realm, :token_secret, now, now,
       :admission_bound, :purge_margin, :max_grant_lifetime, :issue_skew, :key_lifetime
FROM (SELECT coalesce(:clock, CAST(unixepoch('subsec') * 1000 + 0.5 AS INTEGER) * 1000) AS now)
