package sim

import (
	"flag"
	"os"
	"testing"
)

// The flags of the long forms:
//
//	go test ./internal/sim -run TestRuns -steps 10000000 -v
//	go test ./internal/sim -run TestSeed -seed 42 -mistake not-found-is-failed -v
func TestMain(m *testing.M) {
	flag.Int("steps", 0, "how many steps TestRuns makes; 0 is 200,000")
	flag.Uint64("seed", 0, "the seed that TestSeed plays, or the first of TestRuns; 0 is 1")
	flag.String("mistake", NoMistake.String(), "what TestSeed does wrong")
	flag.Parse()
	os.Exit(m.Run())
}

// option reads a flag.
func option[T any](t *testing.T, name string) T {
	t.Helper()
	v, ok := flag.Lookup(name).Value.(flag.Getter).Get().(T)
	if !ok {
		t.Fatalf("flag -%s is of another type", name)
	}
	return v
}
