-- When the time of the oldest refusal record that is left is over.
SELECT retain_until FROM pawl_claims ORDER BY retain_until LIMIT 1
