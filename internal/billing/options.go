package billing

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Concurrency says what a create call hears whose key is already in flight with the same parameters.
type Concurrency string

// The ways to treat a key in flight. The zero value is the safe one.
const (
	ConcurrencyRefuse Concurrency = ""     // 409, code in_progress; atomic
	ConcurrencyWait   Concurrency = "wait" // waits, then replays; atomic
	ConcurrencyRacy   Concurrency = "racy" // not atomic: looks first, writes later, and makes a second credit
)

// LookupMode says how the look-up by reference behaves.
type LookupMode string

// The ways to answer a look-up. Only the zero value ever says "nothing there", with an empty list:
// an absent look-up is an error to the caller, not an answer.
const (
	LookupAnswers     LookupMode = ""
	LookupAbsent      LookupMode = "absent"      // 404
	LookupUnsupported LookupMode = "unsupported" // 501
	LookupBroken      LookupMode = "broken"      // 500
)

// Lookup describes the look-up by reference.
type Lookup struct {
	Mode LookupMode `json:"mode,omitempty"`
	// Lag is how long after its making a credit stays invisible, on the provider's clock.
	Lag time.Duration `json:"lag_ns,omitempty"`
	// Omit leaves these members out of every credit shown: a provider that does not tell all.
	Omit []string `json:"omit,omitempty"`
}

// Settings can be changed while the provider runs; they are not kept across a restart. Durations
// travel as nanoseconds in JSON.
type Settings struct {
	Concurrency Concurrency `json:"concurrency,omitempty"`
	// Retention is how long a key is remembered from its first request, on the provider's clock.
	// Zero means DefaultRetention.
	Retention time.Duration `json:"retention_ns,omitempty"`
	Lookup    Lookup        `json:"lookup,omitzero"`
}

// DefaultRetention is how long keys are remembered unless the settings say otherwise.
const DefaultRetention = 24 * time.Hour

// defaultGrace is how long Serve lets calls in flight finish unless the options say otherwise.
const defaultGrace = 5 * time.Second

func (s Settings) complete() (Settings, error) {
	var bad []error
	if !slices.Contains([]Concurrency{ConcurrencyRefuse, ConcurrencyWait, ConcurrencyRacy}, s.Concurrency) {
		bad = append(bad, fmt.Errorf("unknown concurrency %q", s.Concurrency))
	}
	if !slices.Contains([]LookupMode{LookupAnswers, LookupAbsent, LookupUnsupported, LookupBroken}, s.Lookup.Mode) {
		bad = append(bad, fmt.Errorf("unknown look-up mode %q", s.Lookup.Mode))
	}
	if s.Retention < 0 || s.Lookup.Lag < 0 {
		bad = append(bad, errors.New("a retention or lag is negative"))
	}
	for _, name := range s.Lookup.Omit {
		if !slices.Contains([]string{"id", "account", "amount", "currency", "reference"}, name) {
			bad = append(bad, fmt.Errorf("a credit has no member %q to omit", name))
		}
	}
	if len(bad) > 0 {
		return Settings{}, fmt.Errorf("billing: settings refused: %w", errors.Join(bad...))
	}
	if s.Retention == 0 {
		s.Retention = DefaultRetention
	}
	s.Lookup.Omit = slices.Clone(s.Lookup.Omit)
	return s, nil
}

// Options of a provider. The zero value is a well-behaved provider that keeps its books in memory
// and whose clock stands still.
type Options struct {
	// Now is the provider's clock before Advance. Nil is a clock that only Advance moves.
	Now func() time.Time
	// File keeps the books, the remembered keys and the clock's advance across restarts; it is made
	// if it does not exist. Empty keeps them in memory. One process at a time may use a file.
	File string
	// Settings the provider starts with.
	Settings Settings
	// Faults in force from the start, tried in order.
	Faults []Fault
	// Seed of the faults that fire by probability.
	Seed uint64
	// Control serves POST /_control, with which anybody who reaches the address can change the
	// provider's behaviour. Off unless a test asks for it.
	Control bool
	// Grace is how long Serve lets calls in flight finish once its context ends. Zero means 5 s.
	Grace time.Duration
}
