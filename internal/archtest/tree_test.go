package archtest

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	repository = "../.."
	module     = "github.com/pawl-go/pawl"
)

// tree is what the rules look at: the files of the repository, or of a small tree made for a test.
type tree struct {
	files []*file
	fset  *token.FileSet
}

// file is one file of the tree. ast is nil for what is not Go, and for Go that no build sees (testdata).
type file struct {
	path string // with slashes, from the root of the tree
	data []byte
	ast  *ast.File
	err  error // why it could not be parsed
}

func newTree() *tree { return &tree{fset: token.NewFileSet()} }

func (t *tree) add(name string, data []byte) {
	f := &file{path: name, data: data}
	if path.Ext(name) == ".go" && !inTestdata(name) {
		f.ast, f.err = parser.ParseFile(t.fset, name, data, parser.ParseComments|parser.SkipObjectResolution)
		if f.err != nil {
			f.ast = nil
		}
	}
	t.files = append(t.files, f)
}

// loadTree reads the repository: what git tracks and what it would track, so that a finding comes before the commit;
// without git, every file but those that are never tracked.
func loadTree(t *testing.T) *tree {
	t.Helper()
	names, err := trackedFiles()
	if err != nil {
		t.Logf("without git: %v", err)
		names, err = walkedFiles(os.DirFS(repository))
	}
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	tr := newTree()
	for _, name := range slices.Compact(names) {
		full := filepath.Join(repository, filepath.FromSlash(name))
		info, err := os.Lstat(full)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
			continue // deleted but still tracked, or a link
		}
		data, err := os.ReadFile(full)
		if err != nil {
			t.Fatal(err)
		}
		tr.add(name, data)
	}
	if len(tr.files) < 10 {
		t.Fatalf("found only %d files: this is not the repository", len(tr.files))
	}
	return tr
}

func trackedFiles() ([]string, error) {
	// The clone may belong to another user; naming its files is harmless.
	cmd := exec.Command("git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = repository
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files: %w", err)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"), nil
}

func walkedFiles(root fs.FS) ([]string, error) {
	var names []string
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		switch base := path.Base(name); {
		case err != nil:
			return err
		case d.IsDir() && (base == "node_modules" || name == "bin" || name == ".git" || name == ".cache"):
			return fs.SkipDir
		case !d.IsDir():
			names = append(names, name)
		}
		return nil
	})
	return names, err
}

// goFiles are the parsed files, those of tests included.
func (t *tree) goFiles() []*file {
	return slices.DeleteFunc(slices.Clone(t.files), func(f *file) bool { return f.ast == nil })
}

// codeFiles are the parsed files that no test owns.
func (t *tree) codeFiles() []*file {
	return slices.DeleteFunc(t.goFiles(), (*file).isTest)
}

func (t *tree) line(p token.Pos) int { return t.fset.Position(p).Line }

// exists tells whether a file, or a folder with any file in it, has this path.
func (t *tree) exists(name string) bool {
	return slices.ContainsFunc(t.files, func(f *file) bool {
		return f.path == name || strings.HasPrefix(f.path, name+"/")
	})
}

func (f *file) dir() string { return path.Dir(f.path) }

func (f *file) isTest() bool { return strings.HasSuffix(f.path, "_test.go") }

// servesTests tells what is there for tests only: test files, test data, and packages in folders named for it, such as
// storetest.
func (f *file) servesTests() bool {
	return f.isTest() || inTestdata(f.path) || slices.ContainsFunc(strings.Split(f.dir(), "/"), func(folder string) bool {
		return strings.HasSuffix(folder, "test")
	})
}

func (f *file) lines() int {
	n := bytes.Count(f.data, []byte("\n"))
	if len(f.data) > 0 && !bytes.HasSuffix(f.data, []byte("\n")) {
		n++
	}
	return n
}

// imports maps the name under which a file knows a package to the package's path.
func (f *file) imports() map[string]string {
	names := map[string]string{}
	for _, spec := range f.ast.Imports {
		target := importPath(spec)
		name := path.Base(target)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[name] = target
	}
	return names
}

func importPath(spec *ast.ImportSpec) string { return strings.Trim(spec.Path.Value, `"`) }

func inTestdata(name string) bool { return slices.Contains(strings.Split(name, "/"), "testdata") }
