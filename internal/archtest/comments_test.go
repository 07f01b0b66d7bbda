package archtest

import (
	"go/ast"
	"go/token"
	"strings"
)

// exportedComments wants a comment on every exported name of a package: types, functions, constants, variables,
// methods of exported types, and the methods of an exported interface that has more than one. A group of constants may
// share a comment. Fields are left to the reader: several often share one.
func exportedComments(t *tree) (found []finding) {
	for _, f := range t.codeFiles() {
		report := func(n ast.Node, name string) {
			found = append(found, t.at(f, n, name, "no comment on "+name))
		}
		for _, decl := range f.ast.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				name := functionName(d)
				if name != "" && !said(d.Doc) {
					report(d.Name, name)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					commentedSpec(d, spec, report)
				}
			}
		}
	}
	return found
}

func commentedSpec(group *ast.GenDecl, spec ast.Spec, report func(ast.Node, string)) {
	switch s := spec.(type) {
	case *ast.ValueSpec:
		for _, name := range s.Names {
			if name.IsExported() && !said(group.Doc) && !said(s.Doc) && !said(s.Comment) {
				report(name, name.Name)
			}
		}
	case *ast.TypeSpec:
		if !s.Name.IsExported() {
			return
		}
		alone := group.Lparen == token.NoPos // in a group each type needs its own
		if !said(s.Doc) && !said(s.Comment) && !(alone && said(group.Doc)) {
			report(s.Name, s.Name.Name)
		}
		commentedMethods(s, report)
	}
}

func commentedMethods(s *ast.TypeSpec, report func(ast.Node, string)) {
	methods, ok := s.Type.(*ast.InterfaceType)
	if !ok || methods.Methods.NumFields() == 1 {
		return // the interface's own comment says what its one method does
	}
	for _, m := range methods.Methods.List {
		for _, name := range m.Names { // none for an embedded interface
			if name.IsExported() && !said(m.Doc) && !said(m.Comment) {
				report(name, s.Name.Name+"."+name.Name)
			}
		}
	}
}

// functionName is the name a user writes, or "" where there is none: for unexported names and for methods of
// unexported types.
func functionName(d *ast.FuncDecl) string {
	if !d.Name.IsExported() {
		return ""
	}
	if d.Recv == nil {
		return d.Name.Name
	}
	receiver := d.Recv.List[0].Type
	for {
		switch x := receiver.(type) {
		case *ast.StarExpr:
			receiver = x.X
		case *ast.IndexExpr:
			receiver = x.X
		case *ast.IndexListExpr:
			receiver = x.X
		case *ast.Ident:
			if !x.IsExported() {
				return ""
			}
			return x.Name + "." + d.Name.Name
		default:
			return ""
		}
	}
}

// said tells whether a comment has words, not only directives.
func said(c *ast.CommentGroup) bool { return c != nil && strings.TrimSpace(c.Text()) != "" }
