package pgtest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// oldest and newest bound the supported major versions.
const (
	oldest = 15
	newest = 18
)

// requireAll is the environment variable that turns a skipped test into a failed one, so that nothing is lost in
// silence where everything should be installed.
const requireAll = "PAWL_REQUIRE_ALL"

// Version is one installed PostgreSQL.
type Version struct {
	// Major is the major version, 15 to 18.
	Major int
	// native is the folder of the installation, with bin, lib and share.
	native string
}

// String is the major version in digits, fit for the name of a subtest.
func (v Version) String() string { return strconv.Itoa(v.Major) }

// program is the path of one of the version's programs.
func (v Version) program(name string) string { return filepath.Join(v.native, "bin", name) }

// Versions lists what is installed of PostgreSQL 15 to 18, oldest first. It skips the test when that is nothing. With
// PAWL_REQUIRE_ALL=1 one missing version fails the test.
func Versions(tb testing.TB) []Version {
	tb.Helper()
	wanted, err := wantedMajors(os.Getenv("PAWL_POSTGRES"))
	if err != nil {
		tb.Fatal(err)
	}
	if len(wanted) != newest-oldest+1 && mustHaveAll() {
		tb.Fatalf("PAWL_POSTGRES leaves versions out, and %s=1 forbids that", requireAll)
	}
	var found []Version
	for _, major := range wanted {
		v, err := find(major)
		switch {
		case err == nil:
			found = append(found, v)
		case mustHaveAll():
			tb.Fatal(err)
		default:
			tb.Log(err)
		}
	}
	if len(found) == 0 {
		tb.Skip("no PostgreSQL is installed: run test/postgres/setup")
	}
	return found
}

// Newest is the newest installed version, for tests whose subject does not differ by version.
func Newest(tb testing.TB) Version {
	tb.Helper()
	all := Versions(tb)
	return all[len(all)-1]
}

func mustHaveAll() bool { return os.Getenv(requireAll) == "1" }

// missing skips the test for want of something, or fails it where nothing may be missing.
func missing(tb testing.TB, reason string) {
	tb.Helper()
	if mustHaveAll() {
		tb.Fatal(reason)
	}
	tb.Skip(reason)
}

// wantedMajors reads a list such as "17,18"; empty means every supported version.
func wantedMajors(list string) ([]int, error) {
	var wanted []int
	if list == "" {
		for major := oldest; major <= newest; major++ {
			wanted = append(wanted, major)
		}
		return wanted, nil
	}
	for word := range strings.SplitSeq(list, ",") {
		major, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil || major < oldest || major > newest {
			return nil, fmt.Errorf("PAWL_POSTGRES: %q is not a version from %d to %d", word, oldest, newest)
		}
		wanted = append(wanted, major)
	}
	slices.Sort(wanted)
	return slices.Compact(wanted), nil
}

// find is the installed server of one major version. The stamp is what setup writes last, so half an installation is
// not found.
func find(major int) (Version, error) {
	cache, err := cacheDir()
	if err != nil {
		return Version{}, err
	}
	dir := filepath.Join(cache, "postgres", strconv.Itoa(major))
	if _, err := os.Stat(filepath.Join(dir, "stamp")); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return Version{}, fmt.Errorf("PostgreSQL %d is not installed in %s: run test/postgres/setup", major, dir)
		}
		return Version{}, err
	}
	return Version{Major: major, native: filepath.Join(dir, "native")}, nil
}

// cacheDir is where setup puts the servers: PAWL_CACHE, or .cache at the top of the repository. The top is known by
// setup itself, since the repository holds several modules.
func cacheDir() (string, error) {
	if dir := os.Getenv("PAWL_CACHE"); dir != "" {
		if !filepath.IsAbs(dir) { // every test runs in a directory of its own
			return "", fmt.Errorf("PAWL_CACHE=%s is not an absolute path", dir)
		}
		return dir, nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "test", "postgres", "setup")); err == nil {
			return filepath.Join(dir, ".cache"), nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no PostgreSQL: not inside the repository, and PAWL_CACHE is not set")
		}
		dir = parent
	}
}
