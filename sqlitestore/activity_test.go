package sqlitestore

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
)

// A purge knows whether anybody else wrote since its last chunk, in this process
// or through another connection, and takes a time it knows nothing of for busy
// [P4].
func TestPurgeKnowsWhoElseWrites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pawl.db")
	stores := [2]*Store{}
	for i := range stores {
		s, err := Open(t.Context(), path, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		stores[i] = s
	}
	var last activity
	now := func() activity {
		done, err := stores[0].purgeChunk(t.Context(), sharedChunk, defaultBatch)
		if err != nil {
			t.Fatal(err)
		}
		return done.activity
	}
	for _, step := range []struct {
		name  string
		do    func()
		alone bool
	}{
		{"the first chunk", func() {}, false},
		{"nothing", func() {}, true},
		{"nothing, again", func() {}, true},
		{"an admission of this process", func() { admitHere(t, stores[0]) }, false},
		{"nothing", func() {}, true},
		{"an admission through another connection", func() { admitHere(t, stores[1]) }, false},
		{"nothing", func() {}, true},
	} {
		step.do()
		a := now()
		if a.alone(last) != step.alone {
			t.Errorf("after %s: alone %t, want %t", step.name, !step.alone, step.alone)
		}
		last = a
	}
}

func admitHere(t *testing.T, s *Store) {
	t.Helper()
	intent := pawl.Intent{Kind: "credit.create", Details: pawl.StoredDetails(`{"amount":"1.00"}`)}
	now := time.Now().Truncate(time.Second)
	_, err := s.Admit(t.Context(), pawl.Admission{
		Grant: pawl.Grant{
			Form: pawl.FormToken, Key: pawl.GrantKey{Issuer: "issuer", ID: pawl.NewOperationID().String()},
			Realm: s.Realm(), Subject: "ana", Intent: intent, IssuedAt: now, ExpiresAt: now.Add(time.Hour),
		},
		OperationID: pawl.NewOperationID(), Intent: intent, Caller: pawl.Caller{Principal: "ana"},
		Lease: 30 * time.Second, SubmissionWindow: 10 * time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
}
