package memstore_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/memstore"
)

// What the store says of itself comes first: one process, nothing survived [A1].
func TestFacts(t *testing.T) {
	s, err := memstore.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	f, err := s.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if f.Scope != pawl.ScopeProcess || len(f.Survives) != 0 || len(f.Not) == 0 {
		t.Errorf("scope %v, survives %v, does not survive %v; want process, nothing, something", f.Scope, f.Survives, f.Not)
	}
	if f.Realm != "memory:"+f.StoreID {
		t.Errorf("realm %q, want it made from the store id %q", f.Realm, f.StoreID)
	}
	if err := f.Err(); err != nil {
		t.Errorf("unsafe: %v", err)
	}
}

// Another instance must be configured alike where it matters [A11], and
// timings that break a rule never start [T1].
func TestMisconfigured(t *testing.T) {
	s, err := memstore.New(&memstore.Options{Realm: "here"})
	if err != nil {
		t.Fatal(err)
	}
	margin, broken := pawl.DefaultTimings(), pawl.DefaultTimings()
	margin.PurgeMargin *= 2
	broken.PurgeMargin = 0
	for name, o := range map[string]*memstore.Options{
		"other margin": {Timings: &margin}, "other realm": {Realm: "there"}, "broken timings": {Timings: &broken},
	} {
		if _, err := s.Handle(o); !errors.Is(err, pawl.ErrMisconfigured) {
			t.Errorf("%s: %v, want ErrMisconfigured", name, err)
		}
	}
	if _, err := memstore.New(&memstore.Options{Timings: &broken}); !errors.Is(err, pawl.ErrMisconfigured) {
		t.Errorf("broken timings: %v, want ErrMisconfigured", err)
	}
	if _, err := memstore.New(&memstore.Options{Realm: "a\x00b"}); !errors.Is(err, pawl.ErrInvalid) {
		t.Errorf("malformed realm: %v, want ErrInvalid", err)
	}
}

// A new leeway version is agreed on and then holds for every handle [A11].
func TestNewLeewayIsMerged(t *testing.T) {
	s, err := memstore.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	more := pawl.DefaultTimings()
	more.Leeways["v2"] = more.Leeways[""] * 2
	if _, err := s.Handle(&memstore.Options{Timings: &more}); err != nil {
		t.Fatal(err)
	}
	f, err := s.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(more.Leeways, f.Policy.Leeways); diff != "" {
		t.Errorf("leeways (-want +got):\n%s", diff)
	}
}
