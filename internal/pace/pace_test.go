package pace_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl/internal/pace"
)

// A pause is as long as was asked, is bounded, and ends with its context.
func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		piece := pace.Begin()
		work := time.NewTimer(2 * time.Second)
		<-work.C
		for _, step := range []struct {
			times   int
			longest time.Duration
			want    time.Duration
		}{
			{3, time.Hour, 6 * time.Second}, // of two seconds of work
			{3, time.Second, time.Second},
			{0, time.Hour, 0},
		} {
			began := time.Now()
			piece.Pause(t.Context(), step.times, step.longest)
			if got := time.Since(began); got != step.want {
				t.Errorf("%d times and at most %v: a pause of %v, want %v", step.times, step.longest, got, step.want)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		began := time.Now()
		piece.Pause(ctx, 1000, time.Hour)
		if got := time.Since(began); got != 0 {
			t.Errorf("a pause after the end took %v", got)
		}
	})
}
