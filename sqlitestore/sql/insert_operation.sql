-- The record of an operation, written with the claim of its grant or, for a
-- reservation, by itself [A2, B1]. The primary key refuses an operation id that
-- exists, the unique index a second operation for one grant key: the caller then
-- undoes the whole admission, claim included [A7].
INSERT INTO pawl_operations (
    operation_id, issuer, namespace, grant_id, kind, details,
    authority, principal, tenant, scopes, generation, fingerprint, binding,
    created_at, submit_by, status, fence, owned_since, lease_until
) VALUES (
    :operation_id, :issuer, :namespace, :grant_id, :kind, :details,
    :authority, :principal, :tenant, :scopes, :generation, :fingerprint, :binding,
    :created_at, :submit_by, :status, :fence, :owned_since, :lease_until
)
