package pgstore

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/pgtest"
)

// TestDocumentedRole: the settings by role that docs/stores/postgres.md shows are
// enough to open with PinByRole, on every version.
func TestDocumentedRole(t *testing.T) {
	raw, err := os.ReadFile("../docs/stores/postgres.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`ALTER ROLE app (SET [^;]+);`).FindAllStringSubmatch(string(raw), -1)
	if len(found) < 5 {
		t.Fatalf("only %d settings are shown", len(found))
	}
	eachVersion(t, func(t *testing.T, v pgtest.Version, dsn string) {
		server := pgtest.Shared(t, v)
		tb := mustTables(t, dsn)
		role := server.Role(t, "SUPERUSER")
		for _, m := range found {
			if v.Major < 17 && strings.Contains(m[1], "transaction_timeout") {
				continue
			}
			server.Exec(t, "ALTER ROLE "+role+" "+m[1])
		}
		far := *tb
		far.dsn = as(t, dsn, role)
		s := far.mustOpen(t, Options{Pins: PinByRole})
		mustAdmit(t, s, admissionOf(someGrant(s.realm)))
	})
}

// TestDocumentedPins: the document names every setting that is pinned.
func TestDocumentedPins(t *testing.T) {
	raw, err := os.ReadFile("../docs/stores/postgres.md")
	if err != nil {
		t.Fatal(err)
	}
	o, err := (*Options)(nil).resolve()
	if err != nil {
		t.Fatal(err)
	}
	for name := range o.pins(server{version: 180000}, forAdmissions) {
		if !strings.Contains(string(raw), "`"+name+"`") {
			t.Errorf("the document does not name %s", name)
		}
	}
}
