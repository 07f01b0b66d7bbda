package archtest

import (
	"bytes"
	"fmt"
	"path"
	"regexp"
	"strings"
)

func noBinaries(t *tree) (found []finding) {
	for _, f := range t.files {
		if i := bytes.IndexByte(f.data, 0); i >= 0 {
			line := 1 + bytes.Count(f.data[:i], []byte("\n"))
			found = append(found, finding{path: f.path, line: line, text: "has NUL bytes: a binary"})
		}
	}
	return found
}

// noMachinePaths looks for home and work folders of the machines this was written on, and for hosts that serve packages:
// each user's client knows its own.
func noMachinePaths(t *tree) (found []finding) {
	banned := regexp.MustCompile(`(?:^|[^\w./-])(/(?:root|work|Users|home/\w+)/)` +
		`|(proxy\.golang|sum\.golang|registry\.npmjs|registry\.yarnpkg|deb\.debian|files\.pythonhosted)`)
	for _, f := range t.files {
		if bytes.IndexByte(f.data, 0) >= 0 {
			continue // no text; another rule's business
		}
		for i, line := range strings.Split(string(f.data), "\n") {
			m := banned.FindStringSubmatch(line)
			if m == nil {
				continue
			}
			name := m[1] + m[2]
			found = append(found, finding{path: f.path, line: i + 1, name: name, text: fmt.Sprintf("names %s", name)})
		}
	}
	return found
}

// noPlaceholders looks into comments of Go, and into SQL and shell as a whole.
func noPlaceholders(t *tree) (found []finding) {
	word := regexp.MustCompile(`\b(?:TO[D]O|FIX[M]E|XX[X])\b`) // so written that it does not find itself
	for _, f := range t.files {
		switch {
		case f.ast != nil:
			for _, group := range f.ast.Comments {
				for _, c := range group.List {
					if w := word.FindString(c.Text); w != "" {
						found = append(found, t.at(f, c, w, w+" in a comment"))
					}
				}
			}
		case path.Ext(f.path) == ".sql" || bytes.HasPrefix(f.data, []byte("#!")):
			for i, line := range strings.Split(string(f.data), "\n") {
				if w := word.FindString(line); w != "" {
					found = append(found, finding{path: f.path, line: i + 1, name: w, text: w + " in a script"})
				}
			}
		}
	}
	return found
}
