package sim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-go/pawl"
)

// Census counts what worlds went through, so that a test can tell that it was
// not only the easy part.
type Census struct {
	Steps   int
	Moves   [lastMove + 1]int
	Reached map[string]int
}

// NewCensus returns an empty one.
func NewCensus() *Census { return &Census{Reached: map[string]int{}} }

func (c *Census) count(w *World) {
	for _, h := range w.audit.step.news {
		c.Reached[h.what.String()]++
		if h.what == settled {
			c.Reached["evidence "+string(h.disposition)]++
		}
	}
	for i := range w.records {
		a, b := &w.records[i], &w.audit.step.before[i]
		if a.there && (!b.there || a.Status != b.Status) {
			c.Reached["status "+a.Status.String()]++
		}
		if a.there && a.Status == pawl.StatusSucceeded && b.Status.Open() && a.Takeovers > 0 {
			c.Reached["succeeded after a takeover"]++
		}
	}
}

// String lists what was reached and how often.
func (c *Census) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d steps", c.Steps)
	keys := make([]string, 0, len(c.Reached))
	for k := range c.Reached {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		fmt.Fprintf(&b, "\n%9d  %s", c.Reached[k], k)
	}
	return b.String()
}

func (x what) String() string {
	return [...]string{
		"admitted", "claimed without more", "joined", "may submit", "recorded by the owner", "said as evidence", "taken over",
		"an owner's last answer", "effects", "refusals by the provider", "revoked", "claims purged", "operations deleted",
		"creates again",
	}[x]
}
