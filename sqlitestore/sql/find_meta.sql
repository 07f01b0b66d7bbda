-- What the store is, and the policy that all its instances share [A1, A11].
SELECT store_id, realm, token_secret, policy_revision, epoch, issued_not_before,
       admission_bound, purge_margin, max_grant_lifetime, issue_skew, key_lifetime
FROM pawl_meta
WHERE one = 1
