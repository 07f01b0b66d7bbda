package sqlitestore

import "context"

// OpenHooked opens a store with a clock of the test's own, microseconds since
// 1970 or nil, and with an end of transactions that a test may make fail.
func OpenHooked(ctx context.Context, path string, o *Options, clock func() any, answer func() error) (*Store, error) {
	opts := Options{}
	if o != nil {
		opts = *o
	}
	opts.hooks = hooks{clock: clock, answer: answer}
	return Open(ctx, path, &opts)
}
