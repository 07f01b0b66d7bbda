// Package timeline tells an operation's log as a person would: one sentence for
// each thing that happened, in order, with what is inferred marked as such. The
// command and the console share it. Nothing it says holds a token, details or a
// result [S2].
package timeline

import (
	"fmt"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
)

// Line is one sentence of the story.
type Line struct {
	At time.Time
	// Who is the fence of the owner that acted, 0 for nobody's.
	Fence uint64
	Text  string
	// Inferred says that the log does not hold this itself: a submission is
	// inferred from the check that preceded it [M9].
	Inferred bool
	// Alarm marks what speaks for a second effect [M7].
	Alarm bool
}

// Tell returns the story of a log, the present state last.
func Tell(t pawl.Timeline) []Line {
	var lines []Line
	for _, e := range t.Entries {
		lines = append(lines, tellEntry(t.Operation, e)...)
	}
	if t.NotKept > 0 {
		lines = append(lines, Line{
			At: lastAt(t), Text: fmt.Sprintf("%d more statements that claimed nothing definite were counted, not kept.", t.NotKept),
		})
	}
	return lines
}

func lastAt(t pawl.Timeline) time.Time {
	if n := len(t.Entries); n > 0 {
		return t.Entries[n-1].LastAt
	}
	return t.Operation.CreatedAt
}

func tellEntry(o pawl.Operation, e pawl.Entry) []Line {
	line := Line{At: e.At, Fence: e.Fence}
	switch e.Type {
	case pawl.EntryAdmission:
		line.Text = admission(o)
	case pawl.EntryCheck:
		line.Text = fmt.Sprintf("Owner %d asked whether it may send a create call, and it may.", e.Fence)
		sent := Line{
			At: e.At, Fence: e.Fence, Inferred: true,
			Text: fmt.Sprintf("Owner %d may have sent one create call.", e.Fence),
		}
		return []Line{line, sent}
	case pawl.EntryTakeover:
		line.Text = fmt.Sprintf("The lease was over without a final outcome; %s took over as owner %d.", named(e.Source, "recovery"), e.Fence)
	case pawl.EntryRenewal:
		line.Text = fmt.Sprintf("Owner %d renewed its lease past a second one.", e.Fence)
	case pawl.EntryPurge:
		line.Text = "Retention deleted older entries or the result."
	case pawl.EntryErasure:
		line.Text = "Details and result were erased on request by " + named(e.Source, "an operator") + because(e.Reason) + "."
	case pawl.EntryResolution:
		line.Text = fmt.Sprintf("%s decided that the operation %s%s.", named(e.Source, "An operator"), e.Verdict, because(e.Reason))
		line.Text += disposition(e)
	case pawl.EntryOutcome:
		line.Text = ownersWord(e)
	case pawl.EntryEvidence:
		line.Text = evidence(e)
	default:
		line.Text = string(e.Type)
	}
	line.Alarm = e.Contradiction || e.Disposition == pawl.Divergent || e.Disposition == pawl.Mismatched ||
		e.Disposition == pawl.Contradiction
	if e.Count > 1 {
		line.Text += fmt.Sprintf(" (%d times, last at %s)", e.Count, e.LastAt.UTC().Format(time.TimeOnly))
	}
	return []Line{line}
}

func admission(o pawl.Operation) string {
	who := o.Caller.Principal
	if o.Caller.Tenant != "" {
		who += " of tenant " + o.Caller.Tenant
	}
	if o.Grant.IsZero() {
		return fmt.Sprintf("Reserved under an idempotency key for %s: %s. The first owner may act.", who, o.Intent.Kind)
	}
	return fmt.Sprintf("Grant %s of %s was admitted for %s, its one use: %s. The first owner may act.",
		o.Grant.ID, o.Grant.Issuer, who, o.Intent.Kind)
}

// ownersWord tells of a statement at the owner's door.
func ownersWord(e pawl.Entry) string {
	if e.Disposition == pawl.Refused {
		return fmt.Sprintf("Owner %d said %q at the owner's door and was refused: it is not the owner any more, or the record is settled.",
			e.Fence, e.Verdict)
	}
	switch e.Verdict {
	case pawl.VerdictSucceeded:
		return fmt.Sprintf("Owner %d recorded that the effect succeeded.", e.Fence)
	case pawl.VerdictFailed:
		return fmt.Sprintf("Owner %d recorded a definite failure%s.", e.Fence, because(e.Reason))
	case pawl.VerdictNeedsReconciliation:
		return fmt.Sprintf("Owner %d handed the operation to a person%s.", e.Fence, because(e.Reason))
	default:
		return fmt.Sprintf("Owner %d could not tell whether the effect exists%s.", e.Fence, because(e.Reason))
	}
}

// evidence tells of a statement at the evidence door.
func evidence(e pawl.Entry) string {
	if e.Source == "deferred" {
		return "The lease it waited for was over, so the failure reported earlier now counts" + because(e.Reason) + "."
	}
	if e.Disposition == pawl.Mismatched {
		return fmt.Sprintf("%s reported %q for another %s: not this operation's, but an effect may exist.",
			named(e.Source, "Somebody"), e.Verdict, strings.ReplaceAll(e.MismatchOf, "both", "intent and authority"))
	}
	return fmt.Sprintf("%s reported %q%s.%s", named(e.Source, "Somebody"), e.Verdict, because(e.Reason), disposition(e))
}

func disposition(e pawl.Entry) string {
	switch e.Disposition {
	case pawl.Applied:
		if e.Contradiction {
			return " It was taken, although a failure had been recorded before."
		}
		return " It was taken."
	case pawl.Weaker:
		return " The record already said more."
	case pawl.Deferred:
		return " It waits until the present owner's lease ends, for that owner may still succeed."
	case pawl.Duplicate:
		return " The record said so already."
	case pawl.Contradiction:
		return " The record says that it succeeded, and stays."
	case pawl.Divergent:
		return " The record holds another result, and stays: a second effect may exist."
	}
	return ""
}

func named(source, otherwise string) string {
	if source == "" {
		return otherwise
	}
	return source
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return " (" + reason + ")"
}

// State is the last sentence: how the operation stands.
func State(o pawl.Operation) string {
	s := map[pawl.Status]string{
		pawl.StatusAdmitted:            "It is admitted and not yet final: ask again.",
		pawl.StatusUnknown:             "It cannot be told yet whether the effect exists; recovery will find out, or hand it to a person.",
		pawl.StatusNeedsReconciliation: "It waits for a person: pawl resolve.",
		pawl.StatusConflict:            "It is in conflict and waits for a person: pawl resolve.",
		pawl.StatusFailed:              "It failed. The grant stays spent.",
		pawl.StatusSucceeded:           "It succeeded.",
	}[o.Status]
	var seen []string
	for _, f := range []struct {
		set  bool
		word string
	}{{o.MismatchSeen, "a mismatch"}, {o.ContradictionSeen, "a contradiction"}, {o.DivergenceSeen, "a divergence"}} {
		if f.set {
			seen = append(seen, f.word)
		}
	}
	if seen != nil {
		s += " Seen: " + strings.Join(seen, ", ") + ". A second effect may exist; look at the provider's books."
	}
	return s
}
