-- A leeway version that the store does not hold yet; one it holds stays as it is.
INSERT INTO pawl_leeways (version, leeway) VALUES (:version, :leeway)
ON CONFLICT (version) DO NOTHING
