package storetest

import (
	"fmt"
	"slices"
	"strings"
)

// row is one line of an expected table: what it is about, then what follows.
type row struct {
	line  int
	cells []string
}

// parseTable reads the lines of a table, each with the same number of cells.
func parseTable(text string, cells int) ([]row, error) {
	var rows []row
	n := 0
	for line := range strings.Lines(text) {
		n++
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		fields := strings.Fields(line)
		if len(fields) != cells {
			return nil, fmt.Errorf("line %d has %d cells, want %d", n, len(fields), cells)
		}
		rows = append(rows, row{n, fields})
	}
	return rows, nil
}

// find returns the one row under which a combination falls.
func find(rows []row, combination ...string) (row, error) {
	var found []row
	for _, r := range rows {
		fits := true
		for i, value := range combination {
			fits = fits && covers(r.cells[i], value)
		}
		if fits {
			found = append(found, r)
		}
	}
	if len(found) != 1 {
		return row{}, fmt.Errorf("%v falls under %d rows, want exactly one", combination, len(found))
	}
	return found[0], nil
}

// covers reports whether a cell, a list of alternatives, has a value in it.
func covers(cell, value string) bool {
	if cell == "any" {
		return true
	}
	return slices.ContainsFunc(strings.Split(cell, ","), func(c string) bool {
		return c == value || strings.HasPrefix(value, c+":") || c == "mismatch" && value != "match"
	})
}
