-- The tables of one store. `pawl.` stands for the schema; it is replaced where another name is configured.
--
-- Text that identifies anything is compared byte by byte [A5]: COLLATE "C" everywhere, never a locale's order.
-- Durations are intervals of microseconds only, so that adding one to a time never depends on a session's time zone.

-- What a binary must know to use these tables. A migration raises version; it raises min_reader, the oldest version of
-- the code that may still work here, only when it takes something away: expand first, contract a release later.
CREATE TABLE pawl.schema_state (
    only_row   boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    version    integer NOT NULL,
    min_reader integer NOT NULL
);
INSERT INTO pawl.schema_state (version, min_reader) VALUES (1, 1);

-- What a store is and what all instances must agree on [A1, A11, A12]. One row, written when the store is first opened.
CREATE TABLE pawl.meta (
    only_row           boolean     PRIMARY KEY DEFAULT true CHECK (only_row),
    store_id           uuid        NOT NULL,
    realm              text        COLLATE "C" NOT NULL,
    created_at         timestamptz NOT NULL,
    epoch              bigint      NOT NULL DEFAULT 0,
    issued_not_before  timestamptz,                     -- null: never restored
    replicated         boolean     NOT NULL,            -- admissions are refused unless a standby must confirm them [A3]
    admission_bound    interval    NOT NULL,
    purge_margin       interval    NOT NULL,
    max_grant_lifetime interval    NOT NULL,
    issue_skew         interval    NOT NULL,
    key_lifetime       interval    NOT NULL
);

-- The key of owner tokens [O1], apart from meta so that who may only read never needs it.
CREATE TABLE pawl.secrets (
    only_row  boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    token_key bytea   NOT NULL CHECK (octet_length(token_key) = 32)
);

-- Leeways by policy version. A version in use is never edited [T1].
CREATE TABLE pawl.leeways (
    version text     COLLATE "C" PRIMARY KEY,
    leeway  interval NOT NULL
);

-- Issued grants: immutable records of their issue [A2]. A token's row is the issuance log's.
CREATE TABLE pawl.grants (
    issuer         text        COLLATE "C" NOT NULL,
    namespace      text        COLLATE "C" NOT NULL,
    grant_id       text        COLLATE "C" NOT NULL,
    seq            bigint      GENERATED ALWAYS AS IDENTITY,
    form           smallint    NOT NULL CHECK (form IN (1, 2)),  -- 1 token, 2 stored
    request_id     text        COLLATE "C" NOT NULL,
    request_digest bytea       NOT NULL CHECK (octet_length(request_digest) = 32),
    subject        text        COLLATE "C" NOT NULL,
    tenant         text        COLLATE "C" NOT NULL,
    authority      text        COLLATE "C" NOT NULL,
    kind           text        COLLATE "C" NOT NULL,
    details        text        COLLATE "C" NOT NULL,
    fingerprint    bytea       NOT NULL CHECK (octet_length(fingerprint) = 32),
    issued_at      timestamptz NOT NULL,
    expires_at     timestamptz NOT NULL,
    leeway_policy  text        COLLATE "C" NOT NULL,
    CONSTRAINT grants_key PRIMARY KEY (issuer, namespace, grant_id),
    CONSTRAINT grants_request UNIQUE (issuer, request_id)
);
CREATE UNIQUE INDEX grants_seq ON pawl.grants (seq);
CREATE INDEX grants_expiry ON pawl.grants (expires_at);
CREATE INDEX grants_intent ON pawl.grants (issuer, subject, fingerprint);

-- Refusal records: one row for each claimed key, by an operation or, where operation_id is null, by a revocation
-- [A2, R1]. Both forms of a grant claim here.
CREATE TABLE pawl.claims (
    issuer       text        COLLATE "C" NOT NULL,
    namespace    text        COLLATE "C" NOT NULL,
    grant_id     text        COLLATE "C" NOT NULL,
    operation_id uuid,
    claimed_at   timestamptz NOT NULL,
    retain_until timestamptz NOT NULL,
    revoked_by   text        COLLATE "C",
    reason       text        COLLATE "C",
    CONSTRAINT claims_key PRIMARY KEY (issuer, namespace, grant_id),
    CONSTRAINT claims_revoker CHECK ((operation_id IS NULL) = (revoked_by IS NOT NULL))
);
CREATE INDEX claims_retention ON pawl.claims (retain_until);

-- Operations. Everything down to submit_by is fixed when the row is written [B1]; details alone may be erased.
CREATE TABLE pawl.operations (
    id                 uuid        NOT NULL,
    issuer             text        COLLATE "C",          -- the grant's key; null for a reservation
    namespace          text        COLLATE "C",
    grant_id           text        COLLATE "C",
    kind               text        COLLATE "C" NOT NULL,
    details            text        COLLATE "C" NOT NULL,
    authority          text        COLLATE "C" NOT NULL,
    principal          text        COLLATE "C" NOT NULL,
    tenant             text        COLLATE "C" NOT NULL,
    generation         text        COLLATE "C" NOT NULL,
    scopes             text[]      COLLATE "C" NOT NULL,
    fingerprint        bytea       NOT NULL CHECK (octet_length(fingerprint) = 32),
    binding            bytea       NOT NULL CHECK (octet_length(binding) = 32),
    created_at         timestamptz NOT NULL,
    submit_by          timestamptz NOT NULL,

    status             smallint    NOT NULL DEFAULT 10 CHECK (status IN (10, 20, 30, 40, 50, 60)),
    result             bytea,
    result_digest      bytea       CHECK (octet_length(result_digest) = 32),
    reason             text        COLLATE "C" NOT NULL DEFAULT '',
    settled_at         timestamptz,
    fence              bigint      NOT NULL DEFAULT 1,
    owned_since        timestamptz NOT NULL,
    lease_until        timestamptz NOT NULL,
    resume_at          timestamptz,                      -- null: no pause
    takeovers          integer     NOT NULL DEFAULT 0,
    deferred_reason    text        COLLATE "C",          -- a failure that waits for the end of a lease
    deferred_at        timestamptz,
    mismatch_seen      boolean     NOT NULL DEFAULT false,
    contradiction_seen boolean     NOT NULL DEFAULT false,
    divergence_seen    boolean     NOT NULL DEFAULT false,
    observations       bigint      NOT NULL DEFAULT 0,
    entries            bigint      NOT NULL DEFAULT 0,
    weak_entries       bigint      NOT NULL DEFAULT 0,
    erased             boolean     NOT NULL DEFAULT false,
    log_due_from       timestamptz,                      -- from when the log's retention counts; null: nothing to delete
    result_due_from    timestamptz,                      -- from when the result's counts; null: nothing to clear

    CONSTRAINT operations_pkey PRIMARY KEY (id),         -- [A7] first of the two rules that refuse
    CONSTRAINT operations_whole_key CHECK (num_nulls(issuer, namespace, grant_id) IN (0, 3)),
    CONSTRAINT operations_result CHECK ((status = 60) = (result IS NOT NULL) AND (status = 60) = (result_digest IS NOT NULL)),
    CONSTRAINT operations_settled CHECK ((status >= 50) = (settled_at IS NOT NULL)),
    CONSTRAINT operations_deferred CHECK ((deferred_at IS NULL) = (deferred_reason IS NULL))
) WITH (fillfactor = 85);
CREATE UNIQUE INDEX operations_grant ON pawl.operations (issuer, namespace, grant_id)
    WHERE issuer IS NOT NULL;                            -- [A7] the second: one operation for a grant
CREATE INDEX operations_newest ON pawl.operations (created_at, id);
CREATE INDEX operations_open ON pawl.operations (lease_until) WHERE status IN (10, 20);
CREATE INDEX operations_retention ON pawl.operations (settled_at) WHERE settled_at IS NOT NULL;
CREATE INDEX operations_log_due ON pawl.operations (log_due_from) WHERE log_due_from IS NOT NULL;
CREATE INDEX operations_result_due ON pawl.operations (result_due_from) WHERE result_due_from IS NOT NULL;

-- The operations' logs. Equal statements are one row with a count [M6].
CREATE TABLE pawl.entries (
    operation_id  uuid        NOT NULL,
    key           text        COLLATE "C" NOT NULL,
    seq           bigint      NOT NULL,
    type          text        COLLATE "C" NOT NULL,
    at            timestamptz NOT NULL,
    last_at       timestamptz NOT NULL,
    count         bigint      NOT NULL,
    fence         bigint      NOT NULL,
    source        text        COLLATE "C" NOT NULL,
    verdict       smallint    NOT NULL CHECK (verdict BETWEEN 0 AND 3),
    disposition   text        COLLATE "C" NOT NULL,
    contradiction boolean     NOT NULL,
    mismatch_of   text        COLLATE "C" NOT NULL,
    result_digest bytea       CHECK (octet_length(result_digest) = 32),
    reason        text        COLLATE "C" NOT NULL,
    lease_until   timestamptz,
    CONSTRAINT entries_pkey PRIMARY KEY (operation_id, key)
) WITH (fillfactor = 95);
