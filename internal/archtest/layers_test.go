package archtest

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// layer says what the packages of one folder may import besides the standard library. Tests are free: they bring
// together what the code keeps apart.
type layer struct {
	dir   string   // a folder, "." for the root; "x/..." is x and all below
	own   []string // packages of this module, written like dir; "..." is any
	ext   []string // other modules; "..." is any
	never []string // packages of this module or the standard library that it must not reach through others either
	why   string
}

// layers has a row for every package. Where several fit, the longest folder counts.
func layers() []layer {
	const uuid = "github.com/google/uuid"
	heavy := []string{"net/http", "database/sql"}
	stores := []string{"memstore/...", "sqlitestore/...", "pgstore/...", "etcdstore/..."}
	storesBut := func(mine string) []string {
		return slices.DeleteFunc(slices.Clone(stores), func(s string) bool { return s == mine })
	}
	storeOwn := func(mine string) []string { return []string{".", mine, "internal/failpoint", "internal/pace"} }
	return []layer{
		{
			dir: ".", own: []string{"internal/canonical"}, ext: []string{uuid}, never: slices.Concat(heavy, stores),
			why: "the domain: whoever embeds it pays for nothing else",
		},
		{
			dir: "internal/canonical", ext: []string{"github.com/go-json-experiment/json"}, never: heavy,
			why: "canonical JSON, the one thing the root needs that the standard library lacks",
		},
		{dir: "internal/failpoint", why: "may be imported from anywhere, so imports nothing"},
		{dir: "internal/pace", why: "may be imported from anywhere, so imports nothing"},
		{
			dir: "internal/memdb", own: []string{"."}, ext: []string{uuid}, never: stores,
			why: "the tables of the memory store, apart so that wrong stores can be made on them",
		},
		{
			dir: "memstore/...", own: append(storeOwn("memstore/..."), "internal/memdb"), ext: []string{uuid},
			never: storesBut("memstore/..."),
			why:   "a store knows the root and its driver; this one's driver is a set of tables in memory",
		},
		{
			dir: "sqlitestore/...", own: storeOwn("sqlitestore/..."),
			ext:   []string{"modernc.org/sqlite", "github.com/pressly/goose/v3", "golang.org/x/sys", uuid},
			never: storesBut("sqlitestore/..."),
			why:   "a store knows the root and its driver",
		},
		{
			dir: "pgstore/...", own: storeOwn("pgstore/..."),
			ext:   []string{"github.com/jackc/pgx/v5", "github.com/pressly/goose/v3", uuid},
			never: storesBut("pgstore/..."),
			why:   "a store knows the root and its driver",
		},
		{
			dir: "etcdstore/...", own: storeOwn("etcdstore/..."), ext: []string{"go.etcd.io/etcd", uuid},
			never: storesBut("etcdstore/..."),
			why:   "a store knows the root and its driver",
		},
		{
			dir: "storetest/...", own: []string{".", "storetest/...", "memstore", "internal/memdb"},
			ext: []string{"github.com/google/go-cmp", "pgregory.net/rapid", "github.com/anishathalye/porcupine", uuid},
			why: "the suite, which anybody's store may import; its wrong stores are made of the memory store",
		},
		{
			dir: "jwtgrant/...", own: []string{".", "internal/canonical", "jwtgrant/..."}, ext: []string{"github.com/go-jose/go-jose/v4"},
			never: stores, why: "grants come to a store verified, so the verifier knows no store",
		},
		{
			dir: "examples/...", own: []string{".", "sqlitestore", "internal/billing"},
			why: "what a stranger reads first: programs as they would write them",
		},
		{dir: "httpeffect/...", own: []string{"."}, never: stores, why: "an effect sees submissions, not stores"},
		{dir: "idempotency/...", own: []string{"."}, never: stores, why: "middleware on the gate, whatever the store"},
		{
			dir: "service/...", own: []string{".", "service/...", "internal/canonical"},
			ext: []string{
				"github.com/danielgtaylor/huma/v2", "github.com/go-json-experiment/json", "golang.org/x/time", "go.yaml.in/yaml/v3", uuid,
			},
			never: stores, why: "serves a gate; which store is behind it is the binary's choice",
		},
		{dir: "client/...", own: []string{".", "client/..."}, never: stores, why: "speaks HTTP to a service"},
		{dir: "console/...", own: []string{".", "console/..."}, never: stores, why: "shows what the service answers"},
		{dir: "cmd/...", own: []string{"..."}, ext: []string{"..."}, why: "the one place where the parts meet"},
		{
			dir: "internal/...", own: []string{".", "internal/..."}, ext: []string{"..."}, never: stores,
			why: "small helpers, models and the simulator",
		},
		{dir: "internal/archtest", why: "tests only"},
		{dir: "test/...", own: []string{"..."}, ext: []string{"..."}, why: "whole-system tests"},
		{dir: "tools/...", ext: []string{"..."}, why: "a module of its own: what builds Pawl is no part of it"},
		{dir: "bench/...", own: []string{"..."}, ext: []string{"..."}, why: "a module of its own: peers to compare with"},
	}
}

// under tells whether a package, by its folder, falls under a pattern of the table.
func under(pattern, dir string) bool {
	base, all := strings.CutSuffix(pattern, "...")
	if !all {
		return pattern == dir
	}
	base = strings.TrimSuffix(base, "/")
	return base == "" || base == dir || strings.HasPrefix(dir, base+"/")
}

func underAny(patterns []string, dir string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return under(p, dir) })
}

func layerOf(dir string, table []layer) (layer, bool) {
	var best layer
	found := false
	for _, l := range table {
		if under(l.dir, dir) && (!found || len(l.dir) > len(best.dir)) {
			best, found = l, true
		}
	}
	return best, found
}

// ownFolder translates the path of a package of this module to its folder.
func ownFolder(target string) (dir string, own bool) {
	if target == module {
		return ".", true
	}
	return strings.CutPrefix(target, module+"/")
}

// isStandard tells packages of the standard library, whose first path element is no host name.
func isStandard(target string) bool {
	first, _, _ := strings.Cut(target, "/")
	return !strings.Contains(first, ".")
}

func importsOwnLayer(t *tree) (found []finding) {
	rowless := map[string]bool{}
	for _, f := range t.codeFiles() {
		l, ok := layerOf(f.dir(), layers())
		if !ok {
			if !rowless[f.dir()] {
				rowless[f.dir()] = true
				found = append(found, finding{path: f.path, line: 1, text: "no row in layers() for " + f.dir()})
			}
			continue
		}
		for _, spec := range f.ast.Imports {
			target := importPath(spec)
			if !l.allows(target) {
				text := fmt.Sprintf("%s must not import %s: %s", f.dir(), target, l.why)
				found = append(found, finding{path: f.path, line: t.line(spec.Pos()), name: target, text: text})
			}
		}
	}
	return found
}

func (l layer) allows(target string) bool {
	if dir, own := ownFolder(target); own {
		return underAny(l.own, dir)
	}
	return isStandard(target) || slices.ContainsFunc(l.ext, func(m string) bool { return under(m+"/...", target) }) ||
		slices.Contains(l.ext, "...")
}

// importGraph maps each package's folder to what its code imports: folders of this module, paths of others.
func importGraph(t *tree) map[string][]string {
	graph := map[string][]string{}
	for _, f := range t.codeFiles() {
		for _, spec := range f.ast.Imports {
			target := importPath(spec)
			if dir, own := ownFolder(target); own {
				target = dir
			}
			graph[f.dir()] = append(graph[f.dir()], target)
		}
	}
	return graph
}

func reachesNothingBanned(t *tree) (found []finding) {
	graph := importGraph(t)
	for _, dir := range slices.Sorted(maps.Keys(graph)) {
		l, _ := layerOf(dir, layers())
		if len(l.never) == 0 {
			continue
		}
		for target, way := range reached(graph, dir) {
			if !underAny(l.never, target) {
				continue
			}
			text := fmt.Sprintf("%s must not reach %s, and does through %s", dir, target, strings.Join(way, " > "))
			found = append(found, finding{path: firstFile(t, dir), line: 1, name: target, text: text})
		}
	}
	slices.SortFunc(found, func(a, b finding) int { return strings.Compare(a.text, b.text) })
	return found
}

// reached walks the graph from one package and keeps the way by which each other one was found.
func reached(graph map[string][]string, from string) map[string][]string {
	ways := map[string][]string{}
	queue := [][]string{{from}}
	for len(queue) > 0 {
		way := queue[0]
		queue = queue[1:]
		for _, next := range graph[way[len(way)-1]] {
			if _, seen := ways[next]; seen || next == from {
				continue
			}
			ways[next] = append(slices.Clone(way), next)
			queue = append(queue, ways[next])
		}
	}
	return ways
}

func firstFile(t *tree, dir string) string {
	for _, f := range t.codeFiles() {
		if f.dir() == dir {
			return f.path
		}
	}
	return path.Join(dir, "?")
}

// namedFolders are the folders that the tables name.
func namedFolders() []string {
	var dirs []string
	for _, l := range layers() {
		dirs = append(dirs, strings.TrimSuffix(l.dir, "/..."))
	}
	return append(dirs, slices.Sorted(maps.Keys(clockAreas()))...)
}

const notYetFile = "testdata/not-yet.txt"

// notYet are the folders that are still to come.
func notYet(t *testing.T) (dirs []string) {
	t.Helper()
	for line := range strings.Lines(readFile(t, notYetFile)) {
		if dir := strings.TrimSpace(line); dir != "" && !strings.HasPrefix(dir, "#") {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// stale finds folders that the tables name and that are gone, and folders that came but still stand in the list of
// those to come.
func stale(t *tree, dirs, toCome []string) (found []string) {
	for _, dir := range dirs {
		if dir != "." && !t.exists(dir) && !slices.Contains(toCome, dir) {
			found = append(found, fmt.Sprintf("a table names %s, which does not exist", dir))
		}
	}
	for _, name := range toCome {
		if t.exists(name) {
			found = append(found, fmt.Sprintf("%s exists: delete it from %s", name, notYetFile))
		}
	}
	return found
}

func TestStaleFolders(t *testing.T) {
	tr := newTree()
	tr.add("here/a.go", []byte("package here\n"))
	want := []string{"a table names gone, which does not exist", "here exists: delete it from testdata/not-yet.txt"}
	if diff := cmp.Diff(want, stale(tr, []string{".", "here", "gone", "coming"}, []string{"coming", "here"})); diff != "" {
		t.Errorf("stale folders (-want +got):\n%s", diff)
	}
}
