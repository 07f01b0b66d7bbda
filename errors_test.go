package pawl_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
)

// TestErrorTable_Docs: docs/errors.md is the table, row by row [S2].
func TestErrorTable_Docs(t *testing.T) {
	doc, err := os.ReadFile("docs/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range pawl.Table() {
		want := fmt.Sprintf("| %s | %s | %s | %d | %d |", row.Name, row.Meaning, row.Ran, row.HTTP, row.Exit)
		if !strings.Contains(string(doc), want) {
			t.Errorf("docs/errors.md lacks the row\n%s", want)
		}
		if name := pawl.Reason("").Public(row.Class); !strings.Contains(string(doc), "`"+name+"`") {
			t.Errorf("docs/errors.md does not name the problem %q", name)
		}
	}
}

// TestError_Matching: errors are matched by class, by reason and by cause, never
// by text.
func TestError_Matching(t *testing.T) {
	cause := errors.New("disk on fire")
	err := fmt.Errorf("while admitting: %w", pawl.Errorf(pawl.ErrNotConfirmed, pawl.ReasonUnreachable, "no answer: %w", cause))
	for _, target := range []error{pawl.ErrNotConfirmed, cause} {
		if !errors.Is(err, target) {
			t.Errorf("errors.Is(%v, %v) is false", err, target)
		}
	}
	if errors.Is(err, pawl.ErrUnavailable) {
		t.Error("one error is of two classes")
	}
	if got := pawl.ReasonOf(err); got != pawl.ReasonUnreachable {
		t.Errorf("reason: got %q", got)
	}
	if row, ok := pawl.Row(err); !ok || row.HTTP != 503 || row.Exit != 4 || !row.Retry {
		t.Errorf("row: got %+v, %v", row, ok)
	}
}

// TestError_Defect: an error of no class is a defect, 500 and exit code 1 [A7].
func TestError_Defect(t *testing.T) {
	row, ok := pawl.Row(errors.New("constraint violated"))
	if ok || row.HTTP != 500 || row.Exit != 1 || row.Retry {
		t.Errorf("got %+v, %v; want a defect", row, ok)
	}
	if got := pawl.ReasonUsed.Public(0); got != "defect" {
		t.Errorf("no class: got %q", got)
	}
	if got := pawl.Class(0).Error(); got != "defect" {
		t.Errorf("zero class: got %q", got)
	}
}
