package pgstore

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/pawl-go/pawl/internal/pgtest"
)

func TestMain(m *testing.M) {
	if what := os.Getenv(taskVariable); what != "" {
		if err := runTask(context.Background(), what, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(pgtest.Main(m))
}
