package sqlitestore

import (
	"database/sql"
	"fmt"
	"strconv"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/failpoint"
)

// txn is a transaction that holds the write lock. now is the store's time in it
// [P1].
type txn struct {
	asker
	engine engine
	store  identity
	policy pawl.Policy
	epoch  pawl.Epoch
	now    time.Time
	jobs   int64 // that this process's writer had done before
	wrote  bool  // something besides the time floor
}

// identity is what a store is, once [A1].
type identity struct {
	id     string
	realm  string
	secret pawl.TokenSecret
}

// begun is what raising the time floor tells.
type begun struct {
	now      time.Time
	revision int64
	epoch    pawl.Epoch
}

// raiseFloor takes the store's time for what follows in the transaction [P1].
// clock replaces the engine's in tests, else it is nil.
func raiseFloor(a asker, clock any) (b begun, err error) {
	var now, notBefore int64
	found, err := a.one("raise_floor", []any{&now, &b.revision, &b.epoch.Number, &notBefore}, named("clock", clock))
	if err != nil {
		return begun{}, err
	}
	if !found {
		return begun{}, errMoved // the row is written once and never deleted
	}
	b.now, b.epoch.IssuedNotBefore = timeOf(now), timeUnlessZero(notBefore)
	return b, nil
}

// write runs a statement that changes rows.
func (t *txn) write(name string, args ...any) (int64, error) {
	t.wrote = true
	return t.exec(name, args...)
}

// claim runs a statement that writes a claim, and tells whether it did.
func (t *txn) claim(name string, args ...any) (bool, error) {
	var at int64
	claimed, err := t.one(name, []any{&at}, args...)
	t.wrote = t.wrote || claimed
	return claimed, err
}

// operation reads one record; nil where there is none.
func (t *txn) operation(id pawl.OperationID) (*record, error) { return findOperation(t.asker, id) }

func findOperation(a asker, id pawl.OperationID) (*record, error) {
	r := &record{}
	found, err := a.one("find_operation", r.dest(), named("operation_id", id[:]))
	if err != nil || !found {
		return nil, err
	}
	return r, r.read()
}

// spokenFor reads the record that a token speaks for, and what it proves [O1].
func (t *txn) spokenFor(id pawl.OperationID, token pawl.OwnerToken) (op pawl.Operation, fence uint64, proven bool, err error) {
	if err := failpoint.Hit(failpoint.SettleBegun); err != nil {
		return op, 0, false, err
	}
	r, err := t.operation(id)
	if err != nil {
		return op, 0, false, err
	}
	if r == nil {
		return op, 0, false, pawl.NotFound()
	}
	fence, proven = t.store.secret.Fence(r.op, token)
	return r.op, fence, proven, nil
}

// apply writes a change over the record it was decided on: the record and its
// log entries together [M1].
func (t *txn) apply(before pawl.Operation, c pawl.Change) error {
	if !c.Write {
		return nil
	}
	if err := failpoint.Hit(failpoint.SettleDecided); err != nil {
		return err
	}
	next := c.Next
	changed, err := t.write("update_operation",
		named("status", int64(next.Status)), named("result", next.Result),
		named("result_digest", digestOf(next)), named("reason", next.Reason),
		named("settled_at", microsOrNull(next.SettledAt)),
		named("fence", int64(next.Fence)), named("owned_since", micros(next.OwnedSince)),
		named("lease_until", micros(next.LeaseUntil)), named("resume_at", microsOrNull(next.ResumeAt)),
		named("takeovers", int64(next.Takeovers)),
		named("deferred_reason", deferredReason(next)), named("deferred_at", deferredAt(next)),
		named("mismatch_seen", next.MismatchSeen), named("contradiction_seen", next.ContradictionSeen),
		named("divergence_seen", next.DivergenceSeen), named("observations", int64(next.Observations)),
		named("entries", int64(next.Entries)), named("weak_entries", int64(next.WeakEntries)),
		named("details", string(next.Intent.Details.JSON())), named("erased", next.Erased),
		named("log_kept", next.Entries > 0),
		named("operation_id", next.ID[:]),
		named("expected_fence", int64(before.Fence)), named("expected_status", int64(before.Status)),
	)
	if err != nil {
		return err
	}
	if changed != 1 {
		return errChanged // nothing happened [O1]
	}
	if err := failpoint.Hit(failpoint.SettleRecorded); err != nil {
		return err
	}
	for _, e := range c.Entries {
		if err := t.append(next.ID, e); err != nil {
			return err
		}
	}
	return failpoint.Hit(failpoint.SettleLogged)
}

func (t *txn) append(id pawl.OperationID, e pawl.Entry) error {
	var digest any
	if e.ResultDigest != (pawl.ResultDigest{}) {
		digest = e.ResultDigest[:]
	}
	_, err := t.write("append_entry",
		named("operation_id", id[:]), named("seq", int64(e.Seq)), named("key", e.Key), named("type", string(e.Type)),
		named("at", micros(e.At)), named("fence", int64(e.Fence)), named("source", e.Source),
		named("verdict", e.Verdict.String()), named("disposition", string(e.Disposition)),
		named("contradiction", e.Contradiction), named("mismatch_of", e.MismatchOf), named("result_digest", digest),
		named("reason", e.Reason), named("lease_until", microsOrNull(e.LeaseUntil)),
	)
	return err
}

// note appends an entry that no statement made, such as a purge's [M9]. seq is
// the record's entry count, already raised.
func (t *txn) note(id pawl.OperationID, seq int64, e pawl.Entry) error {
	e.Seq, e.At, e.Key = uint64(seq), t.now, strconv.FormatInt(seq, 10)
	return t.append(id, e)
}

func (t *txn) grant(k pawl.GrantKey) (*grantRow, error) {
	return t.findGrant("find_grant", keyArgs(k)...)
}

func (t *txn) findGrant(name string, args ...any) (*grantRow, error) {
	r := &grantRow{realm: t.store.realm}
	found, err := t.one(name, r.dest(), args...)
	if err != nil || !found {
		return nil, err
	}
	return r, r.read()
}

// holder tells who holds a grant key.
func (t *txn) holder(k pawl.GrantKey) (h holder, err error) {
	h.held, err = t.one("find_claim", h.dest(), keyArgs(k)...)
	return h, err
}

func keyArgs(k pawl.GrantKey) []any {
	return []any{named("issuer", k.Issuer), named("namespace", k.Namespace), named("grant_id", k.ID)} // [A5]
}

// meta is what stands in the store about itself [A1, A11, A12].
type meta struct {
	identity
	policy   pawl.Policy
	revision int64
	epoch    pawl.Epoch
}

func readMeta(a asker) (m meta, found bool, err error) {
	var secret []byte
	var notBefore, bound, margin, lifetime, skew, key int64
	found, err = a.one("find_meta", []any{
		&m.id, &m.realm, &secret, &m.revision, &m.epoch.Number, &notBefore, &bound, &margin, &lifetime, &skew, &key,
	})
	if err != nil || !found {
		return meta{}, found, err
	}
	if len(secret) != pawl.TokenSecretSize {
		return meta{}, false, fmt.Errorf("the token secret has %d bytes", len(secret))
	}
	copy(m.secret[:], secret)
	m.epoch.IssuedNotBefore = timeUnlessZero(notBefore)
	m.policy = pawl.Policy{
		Leeways: map[string]time.Duration{}, AdmissionBound: duration(bound), PurgeMargin: duration(margin),
		MaxGrantLifetime: duration(lifetime), IssueSkew: duration(skew), KeyLifetime: duration(key),
	}
	err = a.each("list_leeways", func(rows *sql.Rows) error {
		var version string
		var leeway int64
		err := rows.Scan(&version, &leeway)
		m.policy.Leeways[version] = duration(leeway)
		return err
	})
	return m, true, err
}
