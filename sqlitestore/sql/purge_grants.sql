-- Records of issue that can neither be admitted nor explain a claim any more.
DELETE FROM pawl_grants
WHERE seq IN (
    SELECT g.seq
    FROM pawl_grants AS g
    JOIN pawl_leeways AS l ON l.version = g.leeway_policy
    WHERE g.expires_at < :cutoff
      AND g.expires_at + l.leeway < :cutoff -- now - purge margin
      AND NOT EXISTS (
          SELECT 1 FROM pawl_claims AS c
          WHERE c.issuer = g.issuer AND c.namespace = g.namespace AND c.grant_id = g.grant_id
      )
    ORDER BY g.expires_at
    LIMIT :limit -- [P4]
)
