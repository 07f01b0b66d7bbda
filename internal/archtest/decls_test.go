package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"
)

func noInit(t *tree) (found []finding) {
	for _, f := range t.codeFiles() {
		for _, decl := range f.ast.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				found = append(found, t.at(f, fn, "init", "an init function"))
			}
		}
	}
	return found
}

// noPackageVariables lets pass assertions (var _ I = T{}) and embedded files, which nobody can assign by mistake: the
// first has no name, the second has its directive.
func noPackageVariables(t *tree) (found []finding) {
	for _, f := range t.codeFiles() {
		for _, decl := range f.ast.Decls {
			gen, ok := decl.(*ast.GenDecl)
			if !ok || gen.Tok != token.VAR {
				continue
			}
			for _, spec := range gen.Specs {
				v := spec.(*ast.ValueSpec)
				if embedded(gen.Doc) || embedded(v.Doc) {
					continue
				}
				for _, name := range v.Names {
					if name.Name != "_" {
						found = append(found, t.at(f, name, name.Name, "package variable "+name.Name))
					}
				}
			}
		}
	}
	return found
}

func embedded(doc *ast.CommentGroup) bool {
	return doc != nil && slices.ContainsFunc(doc.List, func(c *ast.Comment) bool {
		return strings.HasPrefix(c.Text, "//go:embed ")
	})
}

// clockAreas are where the wall clock may be read by design; what serves tests may read it too.
func clockAreas() map[string]string {
	return map[string]string{
		"cmd":    "the outermost edge: logs, progress, exit",
		"client": "paces its own retries; the server decides",
		"tools":  "no part of Pawl",
		"bench":  "no part of Pawl",
	}
}

// wallClock finds every mention of the functions that read it, calls and values alike. Timers and sleeps run on the
// monotonic clock and are free.
func wallClock(t *tree) (found []finding) {
	for _, f := range t.codeFiles() {
		area, _, _ := strings.Cut(f.path, "/")
		if _, free := clockAreas()[area]; free || f.servesTests() {
			continue
		}
		imports := f.imports()
		ast.Inspect(f.ast, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			pkg, ok := sel.X.(*ast.Ident)
			if ok && imports[pkg.Name] == "time" && slices.Contains([]string{"Now", "Since", "Until"}, sel.Sel.Name) {
				found = append(found, t.at(f, sel, "time."+sel.Sel.Name, "reads the wall clock: time."+sel.Sel.Name))
			}
			return true
		})
	}
	return found
}

// bannedNames looks at every identifier, those of tests too, at the names of columns and tables, and at the names of
// packages.
func bannedNames(t *tree) (found []finding) {
	packages := []string{"util", "utils", "common", "helper", "helpers", "types", "misc"}
	for _, f := range t.files {
		if f.ast == nil {
			found = append(found, bannedSQL(f)...)
			continue
		}
		if name := strings.TrimSuffix(f.ast.Name.Name, "_test"); slices.Contains(packages, name) {
			found = append(found, t.at(f, f.ast.Name, name, "a package named "+name+" says nothing of what it is for"))
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && banned(id.Name) {
				found = append(found, t.at(f, id, id.Name, "the name "+id.Name))
			}
			return true
		})
	}
	return found
}

func bannedSQL(f *file) (found []finding) {
	if !strings.HasSuffix(f.path, ".sql") {
		return nil
	}
	identifier := regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*`)
	for i, line := range strings.Split(string(f.data), "\n") {
		statement, _, _ := strings.Cut(line, "--")
		for _, name := range identifier.FindAllString(statement, -1) {
			if banned(name) {
				found = append(found, finding{path: f.path, line: i + 1, name: name, text: "the name " + name})
			}
		}
	}
	return found
}

// banned tells names that have the word consume or consumed in them, however written. A consumer is somebody else.
func banned(name string) bool {
	words := regexp.MustCompile(`[A-Z]?[a-z]+`).FindAllString(name, -1)
	return slices.ContainsFunc(append(words, strings.Split(name, "_")...), func(w string) bool {
		return strings.EqualFold(w, "consume") || strings.EqualFold(w, "consumed")
	})
}

// packageComments wants exactly one file of each package to describe it. Where a package is made of tests only, one of
// those does; the comments of other test files do not count.
func packageComments(t *tree) (found []finding) {
	type pkg struct {
		first    *file
		comments []*file
	}
	packages := map[string]*pkg{}
	for _, f := range slices.Concat(t.codeFiles(), t.goFiles()) {
		p := packages[f.dir()]
		if p == nil {
			p = &pkg{first: f}
			packages[f.dir()] = p
		}
		if f.isTest() != p.first.isTest() || slices.Contains(p.comments, f) {
			continue
		}
		if f.ast.Doc != nil {
			p.comments = append(p.comments, f)
		}
	}
	for dir, p := range packages {
		switch {
		case len(p.comments) == 0:
			found = append(found, t.at(p.first, p.first.ast.Name, "", "package "+dir+" has no package comment"))
		case len(p.comments) > 1:
			for _, f := range p.comments[1:] {
				text := fmt.Sprintf("package %s has another package comment in %s", dir, p.comments[0].path)
				found = append(found, t.at(f, f.ast.Name, "", text))
			}
		}
	}
	slices.SortFunc(found, func(a, b finding) int { return strings.Compare(a.path, b.path) })
	return found
}

// functionLength counts from the word func to the closing brace.
func functionLength(t *tree) (found []finding) {
	for _, f := range t.goFiles() {
		limit := 70
		if f.isTest() {
			limit = 100
		}
		for _, decl := range f.ast.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if n := t.line(fn.End()) - t.line(fn.Pos()) + 1; n > limit {
				text := fmt.Sprintf("%s has %d lines, more than %d", fn.Name.Name, n, limit)
				found = append(found, t.at(f, fn.Name, fn.Name.Name, text))
			}
		}
	}
	return found
}

func fileLength(t *tree) (found []finding) {
	for _, f := range t.goFiles() {
		if n := f.lines(); n > 800 && !ast.IsGenerated(f.ast) {
			found = append(found, finding{path: f.path, line: n, text: fmt.Sprintf("%d lines, more than 800", n)})
		}
	}
	return found
}

func (t *tree) at(f *file, n ast.Node, name, text string) finding {
	return finding{path: f.path, line: t.line(n.Pos()), name: name, text: text}
}
