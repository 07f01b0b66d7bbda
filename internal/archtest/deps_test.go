package archtest

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestRootReaches asks the go command what the root package links in all, other modules' imports included. Whoever
// embeds the root pays for this list, so a new entry is a decision.
func TestRootReaches(t *testing.T) {
	cmd := exec.Command("go", "list", "-deps", "-f", "{{.Standard}} {{.ImportPath}}", ".")
	cmd.Dir = repository
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list -deps: %v", err)
	}
	modules := []string{module, module + "/internal/canonical", "github.com/google/uuid"}
	trees := []string{"github.com/go-json-experiment/json/"} // behind internal/canonical
	for line := range strings.Lines(string(out)) {
		standard, target, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case standard == "true":
			if target == "net/http" || target == "database/sql" {
				t.Errorf("the root links %s", target)
			}
		case slices.Contains(modules, target), target+"/" == trees[0]:
		case slices.ContainsFunc(trees, func(p string) bool { return strings.HasPrefix(target, p) }):
		default:
			t.Errorf("the root links %s, which is not among the packages it may reach", target)
		}
	}
}
