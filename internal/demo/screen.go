package demo

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/pawl-go/pawl/internal/timeline"
)

// screen shows runs to a person. A nil writer shows nothing.
type screen struct {
	out      io.Writer
	progress io.Writer
	colour   bool
}

func newScreen(o *Options) *screen {
	s := &screen{out: o.Out, progress: o.Progress, colour: o.Colour}
	if s.out == nil {
		s.out = io.Discard
	}
	return s
}

// Colours of a terminal.
const (
	bold  = "1"
	faint = "2"
	red   = "31"
	green = "32"
)

func (s *screen) paint(colour, text string) string {
	if !s.colour {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

func (s *screen) line(format string, args ...any) { _, _ = fmt.Fprintf(s.out, format+"\n", args...) }

// opening says what is going to happen.
func (s *screen) opening() {
	s.line("A support agent applies a $%s goodwill credit. A supervisor has signed a grant for exactly this", amount)
	s.line("credit, to be used once. Billing answers after %v and honours idempotency keys; the gateway waits %v.", answerTime, gatewayTimeout)
	s.line("In every run the service first checks the grant's signature, audience, agent, amount and expiry.")
	s.line("Each part is a process of its own, and what follows is what they report.")
	s.line("")
}

// await waits for a run and says so, on a line that is rewritten.
func (s *screen) await(r <-chan result, p plan, n, of int) result {
	if s.progress == nil {
		return <-r
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for turn := 0; ; turn++ {
		select {
		case got := <-r:
			_, _ = fmt.Fprint(s.progress, "\r\x1b[K")
			return got
		case <-tick.C:
			spin := []string{"|", "/", "-", "\\"}[turn%4]
			_, _ = fmt.Fprintf(s.progress, "\r\x1b[K%s run %d of %d: %s, %s", spin, n, of, p.store, p.incident)
		}
	}
}

// show shows one run.
func (s *screen) show(n int, r result) {
	s.line("%s", s.paint(bold, fmt.Sprintf("%d. %s", n, r.plan.title)))
	s.line("   %s", r.plan.about)
	s.line("   %s", s.paint(faint, "processes: "+r.processes))
	s.line("")
	s.story(r.story)
	s.line("")
	s.line("   billing's books")
	for _, b := range r.books {
		s.line("     %-13s %s %12s   key %s", b.id, b.account, b.amount, b.key)
	}
	s.line("     %d in all, %s %s", r.Credits, r.Total, currency)
	s.line("")
	if r.told != nil {
		s.explained(r)
	}
	s.line("   %s", s.verdict(r))
	s.line("")
}

// story prints what happened, with the time since the agent's first click.
func (s *screen) story(events []event) {
	first := slices.IndexFunc(events, func(e event) bool { return e.Type == evClick })
	if first < 0 {
		return
	}
	start := events[first].At
	for _, e := range events[first:] {
		text := e.sentence()
		if text == "" {
			continue
		}
		at := s.paint(faint, fmt.Sprintf("%7.3f s", e.At.Sub(start).Seconds()))
		s.line("   %s  %-11s %s", at, e.who, text)
	}
}

// explained prints an operation's log as the command explain does.
func (s *screen) explained(r result) {
	s.line("   what the store tells of operation %s (pawl explain)", r.operation)
	start := r.told[0].At
	for _, l := range r.told {
		s.line("   %s %7.3f s  %s", mark(l), l.At.Sub(start).Seconds(), wrapped(l.Text, 84, 16))
	}
	s.line("                %s", r.state)
	s.line("")
}

// wrapped breaks a text into lines of at most width characters where it can; all
// but the first are indented.
func wrapped(text string, width, indent int) string {
	var b strings.Builder
	used := 0
	for i, word := range strings.Fields(text) {
		switch {
		case i > 0 && used+1+len(word) > width:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			used = 0
		case i > 0:
			b.WriteString(" ")
			used++
		}
		b.WriteString(word)
		used += len(word)
	}
	return b.String()
}

// mark flags what is inferred and what alarms.
func mark(l timeline.Line) string {
	switch {
	case l.Alarm:
		return "!"
	case l.Inferred:
		return "~"
	}
	return " "
}

func (s *screen) verdict(r result) string {
	if r.Problem != "" {
		return s.paint(red, "NOT AS CLAIMED: "+r.Problem)
	}
	colour := green
	if r.Credits > 1 {
		colour = red
	}
	return s.paint(colour, credits(r.RunReport)+".") + " " + r.plan.verdict
}

func credits(r RunReport) string {
	if r.Credits == 1 {
		return "1 credit, $" + r.Total
	}
	return fmt.Sprintf("%d credits, $%s", r.Credits, r.Total)
}

// closing lists all runs.
func (s *screen) closing(r Report) {
	for _, run := range r.Runs {
		end := "as claimed"
		if run.Problem != "" {
			end = s.paint(red, "NOT AS CLAIMED")
		}
		s.line("%-8s  %-8s  %-18s  %s", run.Store, run.Incident, credits(run), end)
	}
	if !r.OK {
		var names []string
		for _, run := range r.Runs {
			if run.Problem != "" {
				names = append(names, run.Store+"/"+run.Incident)
			}
		}
		s.line("%s", s.paint(red, "Not every run ended as claimed: "+strings.Join(names, ", ")))
	}
}
