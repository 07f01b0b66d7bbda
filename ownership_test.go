package pawl_test

import (
	"errors"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
)

// openRecord is owned by fence 3 until at(30), and may be created with until
// at(600).
func openRecord(t *testing.T) pawl.Operation {
	o := recordIn(t, pawl.StatusAdmitted)
	o.OwnedSince, o.LeaseUntil, o.SubmitBy = at(0), at(30), at(600)
	return o
}

// Every owner call needs the token of the present owner: a superseded one is
// fenced, any other is not found [O1].
func TestCase_CA21_WhoIsTheOwner(t *testing.T) {
	for name, c := range map[string]struct {
		speaker
		want error
	}{
		"present owner":        {speaker{fence: presentFence, proven: true}, nil},
		"superseded owner":     {speaker{fence: presentFence - 1, proven: true}, pawl.ErrFenced},
		"first owner":          {speaker{fence: pawl.FirstFence, proven: true}, pawl.ErrFenced},
		"joined attempt":       {speaker{fence: 0, proven: true}, pawl.ErrNotFound},
		"no token":             {speaker{}, pawl.ErrNotFound},
		"another's token":      {speaker{fence: presentFence}, pawl.ErrNotFound},
		"another history":      {speaker{fence: presentFence + 1, proven: true}, pawl.ErrFenced},
		"token not proven, 1 ": {speaker{fence: 1}, pawl.ErrNotFound},
	} {
		o := openRecord(t)
		calls := map[string]error{"CheckOwner": o.CheckOwner(c.fence, c.proven)}
		_, calls["PermitSubmit"] = pawl.PermitSubmit(o, c.fence, c.proven, at(1))
		_, calls["RenewLease"] = pawl.RenewLease(o, c.fence, c.proven, time.Minute, time.Minute, at(1))
		_, calls["RecordOutcome"] = pawl.RecordOutcome(o, c.fence, c.proven, pawl.Succeeded("x"), 0, at(1))
		for call, err := range calls {
			if (c.want == nil) != (err == nil) || !errors.Is(err, c.want) {
				t.Errorf("%s, %s: %v, want %v", name, call, err, c.want)
			}
		}
	}
}

// A create call is permitted only before both lease and submission deadline, and
// only in an open status [O5]; both ends are strict.
func TestSubmissionCheck(t *testing.T) {
	for name, c := range map[string]struct {
		now    time.Time
		status pawl.Status
		until  time.Time
		by     time.Time
		want   pawl.Reason
	}{
		"admitted":               {at(1), pawl.StatusAdmitted, at(30), at(600), ""},
		"unknown":                {at(1), pawl.StatusUnknown, at(30), at(600), ""},
		"a moment before both":   {at(30).Add(-1), pawl.StatusAdmitted, at(30), at(30), ""},
		"at the lease's end":     {at(30), pawl.StatusAdmitted, at(30), at(600), pawl.ReasonLeaseOver},
		"past the lease":         {at(31), pawl.StatusAdmitted, at(30), at(600), pawl.ReasonLeaseOver},
		"at the deadline":        {at(30), pawl.StatusAdmitted, at(60), at(30), pawl.ReasonDeadlineOver},
		"past the deadline":      {at(31), pawl.StatusAdmitted, at(60), at(30), pawl.ReasonDeadlineOver},
		"waiting for a person":   {at(1), pawl.StatusNeedsReconciliation, at(30), at(600), pawl.ReasonNotOpen},
		"conflict [M8]":          {at(1), pawl.StatusConflict, at(30), at(600), pawl.ReasonNotOpen},
		"failed":                 {at(1), pawl.StatusFailed, at(30), at(600), pawl.ReasonNotOpen},
		"succeeded":              {at(1), pawl.StatusSucceeded, at(30), at(600), pawl.ReasonNotOpen},
		"never leased (zero)":    {at(1), pawl.StatusAdmitted, time.Time{}, at(600), pawl.ReasonLeaseOver},
		"never submitted (zero)": {at(1), pawl.StatusAdmitted, at(30), time.Time{}, pawl.ReasonDeadlineOver},
		"no status at all":       {at(1), 0, at(30), at(600), pawl.ReasonNotOpen},
	} {
		o := openRecord(t)
		o.Status, o.LeaseUntil, o.SubmitBy = c.status, c.until, c.by
		change, err := pawl.PermitSubmit(o, presentFence, true, c.now)
		if pawl.ReasonOf(err) != c.want || change.Write != (c.want == "") {
			t.Errorf("%s: %v, written %v; want %q", name, err, change.Write, c.want)
		}
		if c.want == "" && (len(change.Entries) != 1 || change.Entries[0].Type != pawl.EntryCheck) {
			t.Errorf("%s: the permitted call is not in the log [M9]: %+v", name, change.Entries)
		}
	}
}

// Renewing for ever ends at submission deadline + effect timeout + margin [O3].
func TestCase_CD21_EndlessRenewal(t *testing.T) {
	const lease, beyond = 45 * time.Second, 12 * time.Second
	o := openRecord(t)
	now := at(0)
	for range 100 {
		now = now.Add(20 * time.Second)
		c, err := pawl.RenewLease(o, presentFence, true, lease, beyond, now)
		if err != nil {
			if !errors.Is(err, pawl.ErrFenced) {
				t.Fatal(err)
			}
			break
		}
		if c.Next.LeaseUntil.Before(o.LeaseUntil) {
			t.Fatalf("a renewal shortened the lease from %v to %v", o.LeaseUntil, c.Next.LeaseUntil)
		}
		o = c.Next
	}
	if want := o.SubmitBy.Add(beyond); !o.LeaseUntil.Equal(want) || now.Before(want) {
		t.Errorf("the last lease ends %v at %v, want %v and no more", o.LeaseUntil, now, want)
	}
	if _, ok := pawl.TakeOverOperation(o, lease, "bob", now); !ok {
		t.Error("the operation cannot be taken over afterwards")
	}
}

// A renewal needs an unexpired lease, whose end is strict, and never shortens [O3].
func TestRenewalNeedsALease(t *testing.T) {
	o := openRecord(t)
	if _, err := pawl.RenewLease(o, presentFence, true, time.Minute, 0, at(30)); pawl.ReasonOf(err) != pawl.ReasonLeaseOver {
		t.Errorf("at the lease's end: %v, want lease over", err)
	}
	c, err := pawl.RenewLease(o, presentFence, true, time.Second, 0, at(1))
	if err != nil || !c.Next.LeaseUntil.Equal(at(30)) {
		t.Errorf("a short renewal: %v, lease until %v; want the old end", err, c.Next.LeaseUntil)
	}
	o.SubmitBy = at(-10) // the deadline is over: what is left of the lease stays
	c, err = pawl.RenewLease(o, presentFence, true, time.Minute, time.Second, at(1))
	if err != nil || !c.Next.LeaseUntil.Equal(at(30)) {
		t.Errorf("past the deadline: %v, lease until %v; want the old end", err, c.Next.LeaseUntil)
	}
}

// Renewals beyond a second lease are told in the log, others are not [M9].
func TestLongOwnershipIsLogged(t *testing.T) {
	o := openRecord(t)
	for seconds, logged := range map[int]bool{10: false, 29: true} {
		c, err := pawl.RenewLease(o, presentFence, true, 20*time.Second, time.Minute, at(seconds))
		if err != nil || (len(c.Entries) == 1) != logged {
			t.Errorf("after %d s: %v, entries %+v; want logged %v", seconds, err, c.Entries, logged)
		}
	}
}

// Only what is admitted or unknown, without a lease and not paced, is taken over;
// the new owner is the next fence with a lease from now [O2].
func TestTakeoverRule(t *testing.T) {
	for _, s := range pawl.Statuses() {
		for name, c := range map[string]struct {
			lease, resume time.Time
			free          bool
		}{
			"lease over":                 {at(0), time.Time{}, true},
			"lease live for a moment":    {at(0).Add(1), time.Time{}, false},
			"paced until now":            {at(-9), at(0), true},
			"paced for another moment":   {at(-9), at(0).Add(1), false},
			"paced, and the lease lives": {at(5), at(3), false},
		} {
			o := recordIn(t, s)
			o.LeaseUntil, o.ResumeAt, o.Takeovers = c.lease, c.resume, 4
			change, ok := pawl.TakeOverOperation(o, 45*time.Second, "bob", at(0))
			if want := c.free && s.Open(); ok != want || change.Write != want {
				t.Errorf("%v, %s: taken over %v, want %v", s, name, ok, want)
				continue
			}
			if !ok {
				continue
			}
			checkStep(t, o, change)
			n := change.Next
			if n.Fence != o.Fence+1 || n.Takeovers != 5 || !n.LeaseUntil.Equal(at(45)) || !n.OwnedSince.Equal(at(0)) || !n.ResumeAt.IsZero() {
				t.Errorf("%v, %s: %+v", s, name, n)
			}
			if e := change.Entries; len(e) != 1 || e[0].Type != pawl.EntryTakeover || e[0].Source != "bob" || e[0].Fence != n.Fence {
				t.Errorf("%v, %s: the log tells %+v [M9]", s, name, e)
			}
		}
	}
}

// An unknown outcome with a pause ends the lease and keeps takeovers away for so
// long; without one it leaves the lease alone [E6].
func TestPause(t *testing.T) {
	o := openRecord(t)
	c, err := pawl.RecordOutcome(o, presentFence, true, pawl.Unknown("timeout"), 0, at(1))
	if err != nil || !c.Next.LeaseUntil.Equal(at(30)) || !c.Next.ResumeAt.IsZero() {
		t.Errorf("without a pause: %v, lease until %v, resume at %v", err, c.Next.LeaseUntil, c.Next.ResumeAt)
	}
	c, err = pawl.RecordOutcome(o, presentFence, true, pawl.Unknown("timeout"), 10*time.Second, at(1))
	if err != nil || c.Next.LeaseLive(at(1)) || !c.Next.ResumeAt.Equal(at(11)) {
		t.Errorf("with one: %v, lease until %v, resume at %v", err, c.Next.LeaseUntil, c.Next.ResumeAt)
	}
	if c.Next.CanTakeOver(at(11).Add(-1)) || !c.Next.CanTakeOver(at(11)) {
		t.Error("it can be taken over before the pause is over, or not after it")
	}
	for name, s := range map[string]pawl.Statement{
		"negative":     {ID: o.ID, Pause: -1},
		"of a success": {ID: o.ID, Pause: 1, Outcome: pawl.Succeeded("x")},
		"of a failure": {ID: o.ID, Pause: 1, Outcome: pawl.Failed("x")},
	} {
		if err := s.Validate(); !errors.Is(err, pawl.ErrInvalid) {
			t.Errorf("a pause %s: %v, want malformed", name, err)
		}
	}
}
