package pawl

import "time"

// stopwatch measures elapsed time on the process's monotonic clock. It is the
// only use of the process's clock in this package: an owner measures its lease
// from before it asked, and is only ever stricter than the store [O5].
type stopwatch struct{ start time.Time }

func startStopwatch() stopwatch { return stopwatch{time.Now()} }

// at is the instant d after the start. A pause cannot move it, as it would move
// the end of a timeout that is counted from now.
func (s stopwatch) at(d time.Duration) time.Time { return s.start.Add(d) }

// elapsed never goes back: time.Since uses the monotonic reading.
func (s stopwatch) elapsed() time.Duration { return time.Since(s.start) }
