       g.form, g.issuer, g.namespace, g.grant_id, g.subject, g.tenant, g.authority, g.kind, g.details,
       g.issued_at, g.expires_at, g.leeway_policy
