-- Refusal records whose time is over by more than the purge margin [P1, R3]. An
-- admission decides under the same write lock and by the same floor, so none can
-- be under way that these rows would still have to refuse.
DELETE FROM pawl_claims
WHERE (issuer, namespace, grant_id) IN (
    SELECT issuer, namespace, grant_id
    FROM pawl_claims
    WHERE retain_until < :cutoff -- now - purge margin
    ORDER BY retain_until
    LIMIT :limit                 -- [P4]
)
