package pawl

import (
	"errors"
	"strings"
	"time"
)

// Scope says among whom a store is shared [A1]. The zero value is no scope: a
// store that does not say may not be used.
type Scope uint8

// The scopes.
const (
	ScopeProcess Scope = iota + 1
	ScopeHost
	ScopeCluster
)

// String returns the word used in reports.
func (s Scope) String() string {
	switch s {
	case ScopeProcess:
		return "process"
	case ScopeHost:
		return "host"
	case ScopeCluster:
		return "cluster"
	}
	return "none"
}

// Facts are read from a deployment: what is promised, on which clock, what it
// survives and what it does not.
type Facts struct {
	Engine    string // such as "sqlite 3.53.0"
	StoreID   string // written once
	Realm     string // written once
	Scope     Scope
	Clock     string    // which clock decides
	Now       time.Time // on that clock
	Survives  []string  // what an acknowledged admission survives
	Not       []string  // what it does not survive
	Epoch     Epoch
	Policy    Policy // in force, as it stands in the store
	PurgeHeld string // why refusal records may not be deleted; empty where they may [P2]
	Checks    []Fact
}

// Fact is one thing read from the deployment.
type Fact struct {
	Name     string
	Value    string
	OK       bool
	Unsafe   bool   // not OK and unsafe: the store refuses to start
	Declared bool   // declared by the operator, cannot be read
	Fix      string // the setting to change and the command that changes it
}

// MustHold is a fact that is unsafe when it does not hold; fix is what to change
// then.
func MustHold(name, value string, ok bool, fix string) Fact {
	f := Fact{Name: name, Value: value, OK: ok, Unsafe: !ok}
	if !ok {
		f.Fix = fix
	}
	return f
}

// Unsafe returns the facts for which a store must not be used.
func (f Facts) Unsafe() (unsafe []Fact) {
	for _, c := range f.Checks {
		if !c.OK && c.Unsafe {
			unsafe = append(unsafe, c)
		}
	}
	if f.Scope == 0 {
		unsafe = append(unsafe, Fact{Name: "scope", Value: "not declared", Unsafe: true})
	}
	return unsafe
}

// Err returns ErrMisconfigured naming every unsafe fact, or nil.
func (f Facts) Err() error {
	var parts []string
	for _, u := range f.Unsafe() {
		s := u.Name + " is " + u.Value
		if u.Fix != "" {
			s += " (" + u.Fix + ")"
		}
		parts = append(parts, s)
	}
	if parts == nil {
		return nil
	}
	return &Error{Class: ErrMisconfigured, Reason: ReasonUnsafeStore, Note: strings.Join(parts, "; ")}
}

// PolicyFact names the fact in which an instance's policy is compared with its
// store's.
const PolicyFact = "this instance"

// AgreementFacts tell whether an instance may use a store [A1, A11]: pinned is
// what its options have against the store's id or realm, policy what [Policy.Agree]
// has against its timings; both nil where it may.
func AgreementFacts(pinned, policy error) (facts []Fact) {
	if e, ok := errors.AsType[*Error](pinned); ok {
		facts = append(facts, Fact{
			Name: "pinned store", Value: e.Note, Unsafe: true, Fix: "connect to the store that is meant, or correct the realm or id that is asked for",
		})
	}
	f := Fact{Name: PolicyFact, Value: "configured as the store demands", OK: true}
	if e, ok := errors.AsType[*Error](policy); ok {
		f.Value, f.OK, f.Unsafe = e.Note, false, true
		f.Fix = "give this instance the store's values; to change the store's, stop all instances and give pawl migrate --adopt-policy the new ones"
	}
	return append(facts, f)
}

// Promise is the report as a sentence a person can read. Where a fact is unsafe
// nothing is promised.
func (f Facts) Promise() string {
	if unsafe := f.Unsafe(); unsafe != nil {
		var what []string
		for _, u := range unsafe {
			what = append(what, u.Name+": "+u.Value)
		}
		return "Nothing is promised here until this is changed: " + strings.Join(what, "; ") + "."
	}
	s := "A grant for realm " + f.Realm + " is admitted at most once among all instances of one " + f.Scope.String() +
		" that use this store (" + f.Engine + "); " + f.Clock + " decides deadlines. "
	if len(f.Survives) == 0 {
		s += "An acknowledged admission survives nothing"
	} else {
		s += "An acknowledged admission survives " + list(f.Survives)
	}
	if len(f.Not) > 0 {
		s += "; it does not survive " + list(f.Not)
	}
	s += "."
	if f.PurgeHeld != "" {
		s += " Refusal records are kept for ever: " + f.PurgeHeld + "."
	}
	return s
}

func list(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}
