-- +goose Up

-- Names carry the prefix pawl_, because a caller's own tables may stand in the
-- same file: that is what the same-transaction form is for. Text is compared
-- with the BINARY collation, byte by byte [A5]. Times are microseconds since
-- 1970 on the store's clock, durations are microseconds.

-- What the store is, once. The time floor is raised by every write and never
-- falls, so that a clock that steps back re-opens nothing [P1].
CREATE TABLE pawl_meta (
    one                INTEGER PRIMARY KEY CHECK (one = 1),
    store_id           TEXT    NOT NULL CHECK (store_id <> ''),
    realm              TEXT    NOT NULL CHECK (realm <> ''),                    -- [A1]
    token_secret       BLOB    NOT NULL CHECK (length(token_secret) = 32),      -- [O1]
    created_at         INTEGER NOT NULL,
    time_floor         INTEGER NOT NULL CHECK (time_floor >= created_at),
    epoch              INTEGER NOT NULL DEFAULT 0 CHECK (epoch >= 0),           -- [A12]
    issued_not_before  INTEGER NOT NULL DEFAULT 0,
    policy_revision    INTEGER NOT NULL DEFAULT 1,                              -- grows with each change below [A11]
    admission_bound    INTEGER NOT NULL CHECK (admission_bound > 0),
    purge_margin       INTEGER NOT NULL CHECK (purge_margin >= 0),
    max_grant_lifetime INTEGER NOT NULL CHECK (max_grant_lifetime > 0),
    issue_skew         INTEGER NOT NULL CHECK (issue_skew >= 0),
    key_lifetime       INTEGER NOT NULL CHECK (key_lifetime > 0),
    CHECK ((epoch = 0) = (issued_not_before = 0))
) STRICT;

-- The admission leeways by policy version; one in use is never edited [A4].
CREATE TABLE pawl_leeways (
    version TEXT    NOT NULL PRIMARY KEY,
    leeway  INTEGER NOT NULL CHECK (leeway >= 0)
) STRICT, WITHOUT ROWID;

-- Immutable records of issue: stored grants, and the issuance log of tokens [A2, R2].
CREATE TABLE pawl_grants (
    seq            INTEGER PRIMARY KEY, -- order of issue
    issuer         TEXT    NOT NULL CHECK (issuer <> ''),
    namespace      TEXT    NOT NULL,
    grant_id       TEXT    NOT NULL CHECK (grant_id <> ''),
    form           INTEGER NOT NULL CHECK (form IN (1, 2)), -- 1 token, 2 stored
    request_id     TEXT    NOT NULL CHECK (request_id <> ''),
    request_digest BLOB    NOT NULL CHECK (length(request_digest) = 32),
    subject        TEXT    NOT NULL CHECK (subject <> ''),
    tenant         TEXT    NOT NULL,
    authority      TEXT    NOT NULL,
    kind           TEXT    NOT NULL CHECK (kind <> ''),
    details        TEXT    NOT NULL CHECK (details <> ''),
    fingerprint    BLOB    NOT NULL CHECK (length(fingerprint) = 32),
    issued_at      INTEGER NOT NULL,
    expires_at     INTEGER NOT NULL CHECK (expires_at > issued_at),
    leeway_policy  TEXT    NOT NULL,
    UNIQUE (issuer, namespace, grant_id),
    UNIQUE (issuer, request_id)
) STRICT;
CREATE INDEX pawl_grants_by_subject ON pawl_grants (issuer, subject);
CREATE INDEX pawl_grants_by_expiry ON pawl_grants (expires_at);

-- One row per grant key that is spoken for, whatever the grant's form: claimed
-- by an operation or, with operation_id NULL, withdrawn [A2, R1]. The row is the
-- refusal record and lives until retain_until and a margin are over [P1].
CREATE TABLE pawl_claims (
    issuer       TEXT    NOT NULL CHECK (issuer <> ''),
    namespace    TEXT    NOT NULL,
    grant_id     TEXT    NOT NULL CHECK (grant_id <> ''),
    operation_id BLOB    CHECK (length(operation_id) = 16),
    claimed_at   INTEGER NOT NULL,
    retain_until INTEGER NOT NULL CHECK (retain_until > claimed_at),
    revoked_by   TEXT    CHECK (revoked_by <> ''), -- who withdrew it and why [R4]
    reason       TEXT,
    PRIMARY KEY (issuer, namespace, grant_id),
    CHECK ((operation_id IS NULL) = (revoked_by IS NOT NULL)),
    CHECK ((revoked_by IS NULL) = (reason IS NULL))
) STRICT, WITHOUT ROWID;
CREATE INDEX pawl_claims_by_retention ON pawl_claims (retain_until);

-- The records of operations. The primary key and the one unique index are the
-- two rules whose violation refuses an admission [A7]; both are NULL-free for an
-- admission, and a reservation has no grant. rowid is the order of creation.
CREATE TABLE pawl_operations (
    operation_id       BLOB    NOT NULL PRIMARY KEY CHECK (length(operation_id) = 16),
    issuer             TEXT,
    namespace          TEXT,
    grant_id           TEXT,
    kind               TEXT    NOT NULL CHECK (kind <> ''),
    details            TEXT    NOT NULL CHECK (details <> ''),
    authority          TEXT    NOT NULL,
    principal          TEXT    NOT NULL CHECK (principal <> ''),
    tenant             TEXT    NOT NULL,
    scopes             TEXT    NOT NULL, -- sorted, one a line
    generation         TEXT    NOT NULL,
    fingerprint        BLOB    NOT NULL CHECK (length(fingerprint) = 32),
    binding            BLOB    NOT NULL CHECK (length(binding) = 32),
    created_at         INTEGER NOT NULL,
    submit_by          INTEGER NOT NULL CHECK (submit_by > created_at),
    status             INTEGER NOT NULL CHECK (status IN (10, 20, 30, 40, 50, 60)),
    result             BLOB,
    result_digest      BLOB    CHECK (length(result_digest) = 32),
    reason             TEXT    NOT NULL DEFAULT '',
    settled_at         INTEGER,
    fence              INTEGER NOT NULL CHECK (fence >= 1),
    owned_since        INTEGER NOT NULL,
    lease_until        INTEGER NOT NULL,
    resume_at          INTEGER,
    takeovers          INTEGER NOT NULL DEFAULT 0 CHECK (takeovers >= 0),
    deferred_reason    TEXT,
    deferred_at        INTEGER,
    mismatch_seen      INTEGER NOT NULL DEFAULT 0 CHECK (mismatch_seen IN (0, 1)),
    contradiction_seen INTEGER NOT NULL DEFAULT 0 CHECK (contradiction_seen IN (0, 1)),
    divergence_seen    INTEGER NOT NULL DEFAULT 0 CHECK (divergence_seen IN (0, 1)),
    observations       INTEGER NOT NULL DEFAULT 0 CHECK (observations >= 0),
    entries            INTEGER NOT NULL DEFAULT 0 CHECK (entries >= 0),
    weak_entries       INTEGER NOT NULL DEFAULT 0 CHECK (weak_entries >= 0),
    erased             INTEGER NOT NULL DEFAULT 0 CHECK (erased IN (0, 1)),
    log_kept           INTEGER NOT NULL DEFAULT 0 CHECK (log_kept IN (0, 1)), -- retention may still have log entries to delete
    CHECK ((issuer IS NULL) = (namespace IS NULL) AND (issuer IS NULL) = (grant_id IS NULL)),
    CHECK ((issuer IS NULL) = (substr(hex(operation_id), 13, 1) = '8')),      -- version 8 is a reservation's [B2]
    CHECK ((result IS NOT NULL) = (status = 60)),                             -- a result exists exactly on success
    CHECK ((result_digest IS NOT NULL) = (status = 60)),
    CHECK ((settled_at IS NOT NULL) = (status IN (50, 60))),
    CHECK ((deferred_reason IS NULL) = (deferred_at IS NULL))
) STRICT;
CREATE UNIQUE INDEX pawl_operations_one_per_grant ON pawl_operations (issuer, namespace, grant_id);
-- What recovery looks through, and what waits for a person: both stay small.
CREATE INDEX pawl_operations_open ON pawl_operations (lease_until, created_at) WHERE status IN (10, 20);
CREATE INDEX pawl_operations_waiting ON pawl_operations (created_at) WHERE status IN (30, 40);
-- What retention looks through; rows leave the last two when they are done.
CREATE INDEX pawl_operations_settled ON pawl_operations (settled_at) WHERE settled_at IS NOT NULL;
CREATE INDEX pawl_operations_log ON pawl_operations (settled_at) WHERE settled_at IS NOT NULL AND log_kept = 1;
CREATE INDEX pawl_operations_result ON pawl_operations (settled_at) WHERE result > x'';

-- The log of every operation [M6, M9]. Equal statements share a key and are counted.
CREATE TABLE pawl_entries (
    operation_id  BLOB    NOT NULL REFERENCES pawl_operations ON DELETE CASCADE,
    seq           INTEGER NOT NULL CHECK (seq >= 1),
    key           TEXT    NOT NULL CHECK (key <> ''),
    type          TEXT    NOT NULL CHECK (type <> ''),
    at            INTEGER NOT NULL,
    last_at       INTEGER NOT NULL,
    count         INTEGER NOT NULL CHECK (count >= 1),
    fence         INTEGER NOT NULL CHECK (fence >= 0),
    source        TEXT    NOT NULL,
    verdict       TEXT    NOT NULL,
    disposition   TEXT    NOT NULL,
    contradiction INTEGER NOT NULL CHECK (contradiction IN (0, 1)),
    mismatch_of   TEXT    NOT NULL,
    result_digest BLOB    CHECK (length(result_digest) = 32),
    reason        TEXT    NOT NULL,
    lease_until   INTEGER,
    PRIMARY KEY (operation_id, seq),
    UNIQUE (operation_id, key)
) STRICT, WITHOUT ROWID;

-- Pair checks of what the code already keeps: whoever reaches the file by
-- another way is held to the same.

-- +goose StatementBegin
CREATE TRIGGER pawl_meta_written_once BEFORE UPDATE OF store_id, realm, token_secret, created_at ON pawl_meta
BEGIN
    SELECT RAISE(ABORT, 'the id, realm and secret of a store are written once'); -- [A1]
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER pawl_meta_only_rises BEFORE UPDATE ON pawl_meta
WHEN NEW.time_floor < OLD.time_floor OR NEW.epoch < OLD.epoch OR NEW.issued_not_before < OLD.issued_not_before
    OR NEW.max_grant_lifetime < OLD.max_grant_lifetime OR NEW.issue_skew < OLD.issue_skew
BEGIN
    SELECT RAISE(ABORT, 'time floor, epoch, lifetime and skew of a store only rise'); -- [P1, A12]
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER pawl_leeways_never_edited BEFORE UPDATE ON pawl_leeways
BEGIN
    SELECT RAISE(ABORT, 'a leeway policy is never edited: add a version');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER pawl_claims_never_edited BEFORE UPDATE ON pawl_claims
BEGIN
    SELECT RAISE(ABORT, 'a claim is never changed'); -- [A10]
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER pawl_grants_never_edited BEFORE UPDATE OF issuer, namespace, grant_id, form, request_id, request_digest,
    subject, tenant, authority, kind, fingerprint, issued_at, expires_at, leeway_policy ON pawl_grants
BEGIN
    SELECT RAISE(ABORT, 'the record of an issue is never changed'); -- [A2]
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER pawl_grants_details_erased_only BEFORE UPDATE OF details ON pawl_grants
WHEN NEW.details <> '{}'
BEGIN
    SELECT RAISE(ABORT, 'the details of an issue are only ever erased'); -- [A2]
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER pawl_operations_fixed
BEFORE UPDATE OF operation_id, issuer, namespace, grant_id, kind, authority, principal, tenant, scopes, generation,
    fingerprint, binding, created_at, submit_by ON pawl_operations
BEGIN
    SELECT RAISE(ABORT, 'what an operation is never changes'); -- [B1]
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER pawl_operations_one_way BEFORE UPDATE ON pawl_operations
WHEN NEW.fence < OLD.fence                                                             -- [O1]
    OR NEW.mismatch_seen < OLD.mismatch_seen                                           -- [M7]
    OR NEW.contradiction_seen < OLD.contradiction_seen
    OR NEW.divergence_seen < OLD.divergence_seen
    OR (OLD.status >= 50 AND NEW.status < OLD.status)                                  -- [M1]
    OR (OLD.status = 60 AND NEW.result_digest <> OLD.result_digest)
    OR (OLD.status = 60 AND NEW.result <> OLD.result AND NEW.result <> x'')            -- emptied by retention or erasure only
BEGIN
    SELECT RAISE(ABORT, 'a record moves one way');
END;
-- +goose StatementEnd
