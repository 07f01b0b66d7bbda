// Package pace lets background work give way: whoever works on what others wait
// for pauses after each piece for so many times as long as that took. It measures
// on the process's monotonic clock, which decides nothing [P4].
package pace

import (
	"context"
	"time"
)

// Piece is a piece of work under way.
type Piece struct{ began time.Time }

// Begin begins a piece.
func Begin() Piece { return Piece{time.Now()} }

// Pause waits for so many times as long as the piece took, and never longer than
// longest. It ends early with ctx, and says nothing of it: the next piece does.
func (p Piece) Pause(ctx context.Context, times int, longest time.Duration) {
	t := time.NewTimer(min(time.Duration(times)*time.Since(p.began), longest))
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
