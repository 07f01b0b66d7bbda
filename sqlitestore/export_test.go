package sqlitestore

import "context"

// OpenHooked opens a store with a clock of the test's own, microseconds since
// 1970 or nil, and with the end of every transaction in a test's hands.
func OpenHooked(ctx context.Context, path string, o *Options, clock func() any, end func(func() error) error) (*Store, error) {
	opts := Options{}
	if o != nil {
		opts = *o
	}
	opts.hooks = hooks{clock: clock, end: end}
	return Open(ctx, path, &opts)
}
