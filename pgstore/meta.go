package pgstore

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pawl-go/pawl"
)

// identity is what the store's one row of meta holds.
type identity struct {
	id     uuid.UUID
	realm  string
	epoch  pawl.Epoch
	policy storedPolicy
}

func (i *identity) scan(scan scanner) error {
	var notBefore *time.Time
	err := scan(append([]any{&i.id, &i.realm, &i.epoch.Number, &notBefore}, i.policy.columns()...)...)
	i.epoch.IssuedNotBefore = timeOf(notBefore)
	return err
}

// storedPolicy receives @policy: microseconds, and the leeways as JSON.
type storedPolicy struct {
	bound, margin, lifetime, skew, keys int64
	replicated                          bool
	leeways                             string
}

func (p *storedPolicy) columns() []any {
	return []any{&p.bound, &p.margin, &p.lifetime, &p.skew, &p.keys, &p.replicated, &p.leeways}
}

func (p *storedPolicy) agreed() (agreed, error) {
	micros := map[string]int64{}
	if err := json.Unmarshal([]byte(p.leeways), &micros); err != nil {
		return agreed{}, &defect{what: "the leeway policies cannot be read"}
	}
	a := agreed{Replicated: p.replicated, Policy: pawl.Policy{
		Leeways:        map[string]time.Duration{},
		AdmissionBound: ofMicros(p.bound), PurgeMargin: ofMicros(p.margin), MaxGrantLifetime: ofMicros(p.lifetime),
		IssueSkew: ofMicros(p.skew), KeyLifetime: ofMicros(p.keys),
	}}
	for version, n := range micros {
		a.Leeways[version] = ofMicros(n)
	}
	return a, nil
}

func ofMicros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

// agree reads what the store is, or makes it, and compares what all instances
// must be configured with alike [A1, A11].
func (s *Store) agree(ctx context.Context, conn *pgx.Conn) error {
	got, err := s.readMeta(ctx, pgxSession{conn}, stmtGetMeta)
	if errors.Is(err, errNoStore) && !s.Existing {
		if err = s.createMeta(ctx, conn); err == nil {
			got, err = s.readMeta(ctx, pgxSession{conn}, stmtGetMeta)
		}
	}
	if err != nil {
		return err
	}
	s.uuid, s.id, s.realm = got.id, got.id.String(), got.realm
	if err := s.pinned(s.id, s.realm); err != nil {
		return err
	}
	err = s.agreeOnPolicy(ctx, conn, got.policy)
	err = wanting(err, "to add a leeway policy or to adopt a policy", "let the tables' owner open the store once with these timings")
	if err != nil {
		return err
	}
	return s.readSecret(ctx, conn)
}

// pinned tells whether the store is the one that the options name [A1].
func (s *settings) pinned(id, realm string) error {
	switch {
	case s.StoreID != "" && s.StoreID != id:
		return pawl.Errorf(pawl.ErrMisconfigured, pawl.ReasonDisagreement, "the store is %s; %s is pinned", id, s.StoreID)
	case s.Realm != "" && s.Realm != realm:
		return pawl.Errorf(pawl.ErrMisconfigured, pawl.ReasonDisagreement, "the store's realm is %q, not %q", realm, s.Realm)
	}
	return nil
}

// errNoStore: the tables are there and hold no store yet.
const errNoStore = constError("the tables hold no store")

func (s *Store) readMeta(ctx context.Context, on session, which statement) (got identity, err error) {
	found := false
	err = on.run(ctx, step{sql: s.sql[which], each: func(scan scanner) error {
		found = true
		return got.scan(scan)
	}})
	if err == nil && !found {
		err = errNoStore
	}
	return got, err
}

// createMeta makes the store: an identity, a realm, a key and a policy, once.
// Of several instances that do so at once, one does [A1].
func (s *Store) createMeta(ctx context.Context, conn *pgx.Conn) error {
	id, err := uuid.NewV7()
	if err != nil {
		return err
	}
	realm := s.Realm
	if realm == "" {
		realm = "postgres:" + id.String()
	}
	key := pawl.NewTokenSecret()
	p := s.policy
	steps := []step{
		{sql: beginSQL},
		{sql: s.sql[stmtCreateMeta], args: []any{
			id, realm, p.Replicated, p.AdmissionBound, p.PurgeMargin, p.MaxGrantLifetime, p.IssueSkew, p.KeyLifetime,
		}},
		{sql: s.sql[stmtCreateSecret], args: []any{key[:]}},
	}
	steps = append(steps, s.leewaySteps(p.Leeways)...)
	err = transaction(ctx, pgxSession{conn}, steps)
	return wanting(err, "to make the store", "pawl migrate makes it as the tables' owner")
}

func (s *Store) leewaySteps(leeways map[string]time.Duration) (steps []step) {
	for _, version := range slices.Sorted(maps.Keys(leeways)) {
		steps = append(steps, step{sql: s.sql[stmtAddLeeway], args: []any{version, leeways[version]}})
	}
	return steps
}

// agreeOnPolicy compares the stored policy with this instance's. A new leeway
// version is added; anything else that differs is refused, or adopted on
// purpose.
func (s *Store) agreeOnPolicy(ctx context.Context, conn *pgx.Conn, raw storedPolicy) error {
	stored, err := raw.agreed()
	if err != nil {
		return err
	}
	next, err := s.nextPolicy(stored)
	if err != nil {
		return err
	}
	if len(next.Leeways) == len(stored.Leeways) && !s.AdoptPolicy {
		s.policy = next
		return nil
	}
	if s.AdoptPolicy && s.Replicated {
		if err := s.standbysNamed(ctx, conn); err != nil {
			return err // nothing is adopted under which this instance could not start
		}
	}
	// Something is written: once more, with everybody else kept out.
	on := pgxSession{conn}
	locked, err := s.lockMeta(ctx, on)
	if err == nil {
		next, err = s.nextPolicy(locked)
	}
	if err != nil {
		rollBack(ctx, on)
		return err
	}
	var steps []step
	if s.AdoptPolicy {
		steps = append(steps, step{sql: s.sql[stmtAdoptPolicy], args: []any{
			next.Replicated, next.AdmissionBound, next.PurgeMargin, next.MaxGrantLifetime, next.IssueSkew, next.KeyLifetime,
		}})
	}
	err = transaction(ctx, on, append(steps, s.leewaySteps(next.Leeways)...))
	s.policy = next
	return err
}

// standbysNamed asks whether commits wait for anybody.
func (s *Store) standbysNamed(ctx context.Context, conn *pgx.Conn) error {
	f, err := s.readSession(ctx, pgxSession{conn})
	if err == nil && f.standbys == "" {
		err = misconfigured("synchronous_standby_names is empty: no commit waits for a standby (%s)", standbysFix)
	}
	return err
}

func (s *Store) lockMeta(ctx context.Context, on session) (agreed, error) {
	if err := on.run(ctx, step{sql: beginSQL}); err != nil {
		return agreed{}, err
	}
	got, err := s.readMeta(ctx, on, stmtLockMeta)
	if err != nil {
		return agreed{}, err
	}
	return got.policy.agreed()
}

func (s *Store) nextPolicy(stored agreed) (agreed, error) {
	if s.AdoptPolicy {
		p, err := stored.Adopt(s.policy.Policy)
		return agreed{p, s.Replicated}, err
	}
	merged, err := stored.Agree(s.policy.Policy)
	if err != nil {
		return agreed{}, err
	}
	if stored.Replicated != s.Replicated {
		return agreed{}, pawl.Errorf(pawl.ErrMisconfigured, pawl.ReasonDisagreement,
			"Replicated is %t in the store and %t here", stored.Replicated, s.Replicated)
	}
	return agreed{merged, stored.Replicated}, nil
}

// readSecret reads the key of owner tokens. A role that may not gets one of its
// own, under which every owner is a stranger: enough for a process that only
// purges or issues [O1].
func (s *Store) readSecret(ctx context.Context, conn *pgx.Conn) error {
	var key []byte
	err := pgxSession{conn}.run(ctx, step{sql: s.sql[stmtGetSecret], each: func(scan scanner) error { return scan(&key) }})
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code == codeNoRight {
		s.secret = pawl.NewTokenSecret()
		s.log.WarnContext(ctx, "the role may not read the key of owner tokens: this instance knows no owner", "store", s.id)
		return nil
	}
	if err != nil {
		return err
	}
	if len(key) != pawl.TokenSecretSize {
		return misconfigured("the store has no key of owner tokens")
	}
	s.secret = pawl.TokenSecret(key)
	return nil
}

// codeNoRight is the SQLSTATE of insufficient_privilege.
const codeNoRight = "42501"

// wanting explains a missing right.
func wanting(err error, what, fix string) error {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code == codeNoRight {
		return misconfigured("the role has no right %s: %s", what, fix)
	}
	return err
}
