package sim

import (
	"fmt"

	"github.com/pawl-go/pawl"
)

// Rule is one thing that must hold after every step, or at the end.
type Rule string

// The rules.
const (
	RuleOneAdmission   Rule = "a grant is admitted at most once [A2], also after its refusal record is gone [P1]"
	RuleOneReservation Rule = "a key makes one operation while it lives [B1, B3]"
	RuleClaim          Rule = "there is no claim without its operation and no operation without its claim [A2]"
	RuleRevoked        Rule = "a revoked grant was not and is not admitted [R1]"
	RuleOneEffect      Rule = "at most one effect while the provider keeps its word [A8, E5, O5]"
	RuleAdmittedFirst  Rule = "no effect without an admission [A6]"
	RuleNeverFalls     Rule = "a status never falls [M1]"
	RuleResult         Rule = "a result never changes [M1]"
	RuleSuccessKept    Rule = "a success that reached the record is not lost [M3]"
	RuleFlags          Rule = "a flag never clears [M7]"
	RuleFence          Rule = "the fence never falls, and grows with every owner [O2]"
	RuleOneOwner       Rule = "only the present owner submits and records [O1, O5]"
	RuleLease          Rule = "nobody becomes owner while another's lease is live [O2]"
	RuleFailedUnder    Rule = "a failure does not overtake another owner's live lease [M1]"
	RuleFailedTrue     Rule = "failed means that the provider or a person said so; not found is no failure [E2]"
	RuleSucceededTrue  Rule = "succeeded means that the effect exists [E1, M1]"
	RuleFixed          Rule = "what an operation is for never changes [B1]"
	RuleKept           Rule = "an operation that is not settled is not deleted [P3]"
	RuleEnds           Rule = "every operation is settled in the end, or a person's [E5]"
	RuleBooks          Rule = "in the end the record agrees with the provider's books [E2, M3]"
)

// Rules returns all of them.
func Rules() []Rule {
	return []Rule{
		RuleOneAdmission, RuleOneReservation, RuleClaim, RuleRevoked, RuleOneEffect, RuleAdmittedFirst, RuleNeverFalls,
		RuleResult, RuleSuccessKept, RuleFlags, RuleFence, RuleOneOwner, RuleLease, RuleFailedUnder, RuleFailedTrue,
		RuleSucceededTrue, RuleFixed, RuleKept, RuleEnds, RuleBooks,
	}
}

// Breach is a rule that was broken. It is an error.
type Breach struct {
	Rule   Rule
	Detail string
}

// Error implements error.
func (b *Breach) Error() string { return string(b.Rule) + ": " + b.Detail }

// happening is what a step did, as the auditor hears of it.
type happening struct {
	what        what
	target      int8
	grant       int8
	who         actorID
	verdict     pawl.Verdict
	digest      pawl.ResultDigest
	fence       uint64
	matched     bool
	resolution  bool
	disposition pawl.Disposition
}

type what uint8

const (
	admitted     what = iota
	claimed           // without more
	joined            // nothing was written
	permitted         // a submission check said yes
	recorded          // the owner's door took it
	settled           // the evidence door answered
	tookOver          //
	heard             // an owner has its last answer about an outcome
	effect            // the provider made one
	refusal           // the provider refused
	revoked           //
	purged            // a claim is gone
	deleted           // an operation is gone
	createsAgain      // recovery found nothing and goes on
	lastWhat     = createsAgain
)

// auditor knows what happened, and holds every step against the rules.
type auditor struct {
	plan    *Plan
	targets []targetHistory
	grants  []grantHistory
	breach  *Breach

	step   *scratch
	census *Census // nil: nobody counts
}

// scratch is what a step needs until it is over. A world and its clones share it.
type scratch struct {
	before []record
	news   []happening
}

type targetHistory struct {
	admissions uint8
	owner      actorID // who is the owner now; 0: nobody
	effects    uint8
	refused    bool
	resolved   bool
}

type grantHistory struct {
	admissions uint8
	effects    uint8
	revoked    bool
	purged     bool
}

func newAuditor(p *Plan) auditor {
	return auditor{
		plan: p, targets: make([]targetHistory, len(p.Targets)), grants: make([]grantHistory, len(p.Grants)),
		step: &scratch{},
	}
}

func (w *World) note(h happening) { w.audit.step.news = append(w.audit.step.news, h) }

func (u *auditor) begin(w *World) {
	u.step.before = append(u.step.before[:0], w.records...)
	u.step.news = u.step.news[:0]
}

func (u *auditor) breaks(r Rule, format string, args ...any) {
	if u.breach == nil {
		u.breach = &Breach{Rule: r, Detail: fmt.Sprintf(format, args...)}
	}
}

// end holds what a step did and what it left behind against the rules.
func (u *auditor) end(w *World) {
	for _, h := range u.step.news {
		u.hear(w, h)
	}
	for i := range w.records {
		u.compare(w, i, &u.step.before[i], &w.records[i])
	}
	for g := range w.claims {
		u.claim(w, g)
	}
	if u.census != nil {
		u.census.count(w)
	}
}

// hear takes in one happening.
func (u *auditor) hear(w *World, h happening) {
	var t *targetHistory
	if h.target != none {
		t = &u.targets[h.target]
	}
	switch h.what {
	case admitted:
		u.admitted(h, t)
	case permitted, recorded:
		if t.owner != h.who {
			u.breaks(RuleOneOwner, "operation %d belongs to %s, not to %s", h.target, w.name(t.owner), w.name(h.who))
		}
	case tookOver:
		t.owner = h.who
		if before := &u.step.before[h.target]; before.LeaseLive(w.clock()) {
			u.breaks(RuleLease, "operation %d was taken over before +%v", h.target, before.LeaseUntil.Sub(epoch()))
		}
	case settled:
		u.settled(w, h, t)
	case heard:
		r := &w.records[h.target]
		if h.verdict == pawl.VerdictSucceeded && r.there && r.Status != pawl.StatusSucceeded {
			u.breaks(RuleSuccessKept, "operation %d is %v, and its owner had a success", h.target, r.Status)
		}
	case effect:
		u.effect(h, t)
	case refusal:
		t.refused = true
	case revoked:
		g := &u.grants[h.grant]
		g.revoked = true
		if g.admissions > 0 {
			u.breaks(RuleRevoked, "grant %d was admitted before", h.grant)
		}
	case purged:
		u.grants[h.grant].purged = true
	}
}

func (u *auditor) admitted(h happening, t *targetHistory) {
	t.admissions++
	t.owner = h.who
	if h.grant == none {
		if t.admissions > 1 {
			u.breaks(RuleOneReservation, "operation %d was reserved %d times", h.target, t.admissions)
		}
		return
	}
	g := &u.grants[h.grant]
	g.admissions++
	switch {
	case g.admissions > 1:
		u.breaks(RuleOneAdmission, "grant %d was admitted %d times", h.grant, g.admissions)
	case g.revoked:
		u.breaks(RuleRevoked, "grant %d was revoked before", h.grant)
	}
}

func (u *auditor) settled(w *World, h happening, t *targetHistory) {
	before, after := &u.step.before[h.target], &w.records[h.target]
	if h.resolution {
		t.resolved = true
	}
	if after.Status.Final() && !before.Status.Final() {
		t.owner = 0 // a final outcome through this door moves the fence [M2]
		if after.Fence == before.Fence {
			u.breaks(RuleFence, "operation %d was settled and its owner may still write", h.target)
		}
	}
	if h.verdict == pawl.VerdictSucceeded && h.matched && after.Status != pawl.StatusSucceeded {
		u.breaks(RuleSuccessKept, "operation %d is %v after a matching success", h.target, after.Status)
	}
	if after.Status == pawl.StatusFailed && before.Status != after.Status && before.LeaseLive(w.clock()) && h.fence != before.Fence {
		u.breaks(RuleFailedUnder, "operation %d failed under the lease of fence %d", h.target, before.Fence)
	}
}

func (u *auditor) effect(h happening, t *targetHistory) {
	t.effects++
	if t.admissions == 0 {
		u.breaks(RuleAdmittedFirst, "an effect of operation %d, which was never admitted", h.target)
	}
	many := t.effects
	if g := u.plan.Targets[h.target].Grant; g != none {
		u.grants[g].effects++
		many = u.grants[g].effects
	}
	if many > 1 {
		u.breaks(RuleOneEffect, "effect number %d, of operation %d", many, h.target)
	}
}

// compare holds a record against what it was before the step.
func (u *auditor) compare(w *World, i int, b, a *record) {
	if !a.there {
		if b.there && !b.Status.Final() {
			u.breaks(RuleKept, "operation %d was %v", i, b.Status)
		}
		return
	}
	t := &u.targets[i]
	switch {
	case a.Status == pawl.StatusFailed && !t.refused && !t.resolved:
		u.breaks(RuleFailedTrue, "operation %d failed, and nobody refused it", i)
	case a.Status == pawl.StatusSucceeded && t.effects == 0 && !t.resolved:
		u.breaks(RuleSucceededTrue, "operation %d succeeded, and the books show nothing", i)
	case a.Lock != w.plan.Targets[i].lock:
		u.breaks(RuleFixed, "operation %d has another lock", i)
	}
	if !b.there {
		return
	}
	switch {
	case a.Status < b.Status:
		u.breaks(RuleNeverFalls, "operation %d was %v and is %v", i, b.Status, a.Status)
	case b.Status == pawl.StatusSucceeded && (a.ResultDigest != b.ResultDigest || string(a.Result) != string(b.Result)):
		u.breaks(RuleResult, "operation %d has another result", i)
	case b.MismatchSeen && !a.MismatchSeen, b.ContradictionSeen && !a.ContradictionSeen, b.DivergenceSeen && !a.DivergenceSeen:
		u.breaks(RuleFlags, "operation %d", i)
	case a.Fence < b.Fence, a.Takeovers > b.Takeovers && a.Fence <= b.Fence:
		u.breaks(RuleFence, "operation %d had fence %d and has %d", i, b.Fence, a.Fence)
	case !a.SubmitBy.Equal(b.SubmitBy), !a.CreatedAt.Equal(b.CreatedAt):
		u.breaks(RuleFixed, "operation %d has another deadline", i)
	}
}

// claim holds a grant's claim against the operations under it.
func (u *auditor) claim(w *World, g int) {
	c := &w.claims[g]
	if c.there && c.by != none && u.targets[c.by].admissions == 0 {
		u.breaks(RuleClaim, "grant %d is claimed by operation %d, which never was", g, c.by)
	}
	for i := range w.records {
		held := c.there && int(c.by) == i || u.grants[g].purged
		if w.records[i].there && w.plan.Targets[i].Grant == g && !held {
			u.breaks(RuleClaim, "operation %d is there without the claim of grant %d", i, g)
		}
	}
}

// close holds the last state against the rules of the end.
func (u *auditor) close(w *World) {
	for i := range w.records {
		r, t := &w.records[i], &u.targets[i]
		if !r.there {
			continue
		}
		if r.Status.Open() {
			u.breaks(RuleEnds, "operation %d is %v for ever", i, r.Status)
		}
		word := !w.plan.Provider.Forgets
		if r.Status == pawl.StatusFailed && t.effects > 0 && word {
			u.breaks(RuleBooks, "operation %d failed, and the books show %d effects", i, t.effects)
		}
		known := r.ResultDigest == result(i, 1).Digest() || r.ResultDigest == retold(i, 1).Digest()
		if r.Status == pawl.StatusSucceeded && !t.resolved && !known && word {
			u.breaks(RuleBooks, "operation %d succeeded with a result that is not in the books", i)
		}
	}
}
