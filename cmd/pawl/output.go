package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/term"
)

// jsonFlag is the flag of every command that can answer with JSON.
type jsonFlag struct {
	JSON bool `help:"Answer with JSON."`
}

// writeJSON prints one indented value.
func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// field is one line of a human answer.
type field struct{ name, value string }

// writeFields prints what is not empty, names aligned.
func writeFields(w io.Writer, fields ...field) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, f := range fields {
		if f.value != "" {
			_, _ = fmt.Fprintf(tw, "%s\t%s\n", f.name, printable(f.value))
		}
	}
	return tw.Flush()
}

// writeTable prints rows under a head.
func writeTable(w io.Writer, head []string, rows [][]string) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(tw, strings.Join(head, "\t"))
	for _, row := range rows {
		for i := range row {
			row[i] = printable(row[i])
		}
		_, _ = fmt.Fprintln(tw, strings.Join(row, "\t"))
	}
	return tw.Flush()
}

// printable keeps text that others wrote from steering a terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return '\uFFFD'
		}
		return r
	}, s)
}

// when is a time for people: UTC, to the millisecond.
func when(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05.000")
}

// isTerminal reports whether w is a terminal that may be given colour.
func isTerminal(w io.Writer, get func(string) string) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && get("NO_COLOR") == "" && get("TERM") != "dumb"
}
