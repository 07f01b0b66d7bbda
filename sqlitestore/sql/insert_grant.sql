-- The immutable record of an issue: a stored grant, or a token's line in the
-- issuance log [A2, R2].
INSERT INTO pawl_grants (
    issuer, namespace, grant_id, form, request_id, request_digest, subject, tenant, authority,
    kind, details, fingerprint, issued_at, expires_at, leeway_policy
) VALUES (
    :issuer, :namespace, :grant_id, :form, :request_id, :request_digest, :subject, :tenant, :authority,
    :kind, :details, :fingerprint, :issued_at, :expires_at, :leeway_policy
)
