package demo

import (
	"context"
	"time"

	"github.com/pawl-go/pawl/internal/billing"
)

// made is the gate that every create call comes to once its credit exists.
const made = "made"

// serveProvider is the billing provider. It makes a credit at once and takes its
// time to answer, as providers do that call others in turn. It honours
// idempotency keys; with Hold it keeps all answers back.
func serveProvider(ctx context.Context, c config, now func() time.Time, t *teller) error {
	p, err := billing.New(&billing.Options{
		Now:    now,
		Faults: []billing.Fault{{HoldAfter: made, DelayAfter: c.Answer}},
		Grace:  stopGrace / 10, // what is held stays held
	})
	if err != nil {
		return err
	}
	if !c.Hold {
		p.Release(made)
	}
	l, err := listen(ctx)
	if err != nil {
		return err
	}
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		tellCredits(ctx, p, t)
	}()
	t.tell(event{Type: evListening, URL: "http://" + l.Addr().String()})
	err = p.Serve(ctx, l)
	<-watched
	return err
}

// tellCredits tells of each credit as it is made, and of calls that made none,
// until the provider stops.
func tellCredits(ctx context.Context, p *billing.Provider, t *teller) {
	credits, replays := 0, 0
	for calls := 1; ; calls++ {
		if p.Await(ctx, made, calls) != nil {
			return
		}
		books := p.Books()
		for _, c := range books.Credits[credits:] {
			credits++
			t.tell(event{Type: evCredited, Credit: c.ID, Key: c.Reference, Text: c.Amount + " " + c.Currency})
		}
		if calls-credits > replays {
			replays++
			t.tell(event{Type: evReplayed})
		}
	}
}
