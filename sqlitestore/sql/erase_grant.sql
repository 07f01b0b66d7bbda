-- Removes the details of a settled operation's grant: the one change of the record of an issue. The fingerprint stays, which
-- is what is compared.
UPDATE pawl_grants
SET details = '{}'
WHERE issuer = :issuer AND namespace = :namespace AND grant_id = :grant_id -- [A5]
