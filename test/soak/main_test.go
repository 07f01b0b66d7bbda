//go:build unix

package soak

import (
	"fmt"
	"os"
	"testing"

	"github.com/pawl-go/pawl/internal/pgtest"
)

// assignmentVariable makes this binary a worker instead of a test.
const assignmentVariable = "PAWL_SOAK_ASSIGNMENT"

func TestMain(m *testing.M) {
	raw := os.Getenv(assignmentVariable)
	if raw == "" {
		os.Exit(pgtest.Main(m))
	}
	if err := work(raw); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}
