package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// event is one line of `go test -json`; see `go doc test2json`.
type event struct {
	Action      string
	Package     string
	Test        string
	Output      string
	FailedBuild string
}

// testID names a test, or a package where test is empty.
type testID struct{ pkg, test string }

type summary struct {
	out     io.Writer
	result  result
	output  map[testID][]string // what each unfinished test or package has written
	failed  map[string]int      // failed tests by package
	skipped map[string][]string // tests by the reason they gave
}

func newSummary(out io.Writer) *summary {
	return &summary{
		out:     out,
		output:  map[testID][]string{},
		failed:  map[string]int{},
		skipped: map[string][]string{},
	}
}

func (s *summary) read(in io.Reader) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			s.line(line)
		}
		if err == io.EOF {
			return s.abandoned()
		}
		if err != nil {
			return err
		}
	}
}

// line takes one line of the stream. What is no event was written by the go command itself and is passed on.
func (s *summary) line(line string) {
	var e event
	if err := json.Unmarshal([]byte(line), &e); err != nil {
		fmt.Fprint(s.out, line)
		return
	}
	id := testID{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		fmt.Fprint(s.out, e.Output)
	case "output":
		s.output[id] = append(s.output[id], e.Output)
	case "run":
		s.output[id] = nil // present from now on, so that a test which never ends is noticed
	case "pass", "fail", "skip":
		if e.Test == "" {
			s.endPackage(e)
		} else {
			s.endTest(id, e.Action)
		}
	}
}

func (s *summary) endTest(id testID, action string) {
	switch action {
	case "pass":
		s.result.Passed++
	case "fail":
		s.result.Failed++
		s.failed[id.pkg]++
		s.dump(id)
	case "skip":
		s.result.Skipped++
		why := reason(s.output[id])
		s.skipped[why] = append(s.skipped[why], id.pkg+"."+id.test)
	}
	delete(s.output, id)
}

// endPackage prints the package's closing line. Of a failed package it prints all that belongs to no test, and every
// test that had not ended: those are what a panic or a timeout took down.
func (s *summary) endPackage(e event) {
	id := testID{pkg: e.Package}
	if e.Action == "fail" {
		s.unfinished(e.Package)
		if s.failed[e.Package] == 0 {
			s.result.Failed++ // a build, a TestMain or an exit outside any test
		}
		s.dump(id)
	}
	if closing := closingLine(s.output[id]); closing != "" {
		s.result.Packages = append(s.result.Packages, closing)
		if e.Action != "fail" { // else the dump has it
			fmt.Fprintln(s.out, closing)
		}
	} else if e.FailedBuild != "" {
		s.result.Packages = append(s.result.Packages, "FAIL\t"+e.Package+" [build failed]")
	}
	delete(s.output, id)
}

func (s *summary) unfinished(pkg string) {
	var open []testID
	for id := range s.output {
		if id.pkg == pkg && id.test != "" {
			open = append(open, id)
		}
	}
	slices.SortFunc(open, func(a, b testID) int { return strings.Compare(a.test, b.test) })
	for _, id := range open {
		s.endTest(id, "fail")
	}
}

// abandoned reports packages whose stream ended before they did: whoever wrote it was killed.
func (s *summary) abandoned() error {
	open := map[string]bool{}
	for id := range s.output {
		open[id.pkg] = true
	}
	for pkg := range open {
		s.unfinished(pkg)
		s.dump(testID{pkg: pkg})
	}
	if len(open) > 0 {
		s.result.Failed++
		return fmt.Errorf("the events ended in the middle of %d packages", len(open))
	}
	return nil
}

func (s *summary) dump(id testID) {
	for _, line := range s.output[id] {
		if !progress(line) {
			fmt.Fprint(s.out, line)
		}
	}
}

func (s *summary) printSkips() {
	for _, why := range slices.Sorted(maps.Keys(s.skipped)) {
		tests := s.skipped[why]
		slices.Sort(tests)
		more := ""
		if len(tests) > 3 {
			more = fmt.Sprintf(" and %d more", len(tests)-3)
			tests = tests[:3]
		}
		fmt.Fprintf(s.out, "skipped: %s%s: %s\n", strings.Join(tests, ", "), more, why)
	}
}

// progress tells lines that say only where a test stands.
func progress(line string) bool {
	return strings.HasPrefix(line, "=== ")
}

// reason is what a skipped test wrote, on one line.
func reason(output []string) string {
	var parts []string
	for _, line := range output {
		text := strings.TrimSpace(line)
		if text != "" && !progress(line) && !strings.HasPrefix(text, "--- SKIP") {
			parts = append(parts, text)
		}
	}
	if len(parts) == 0 {
		return "no reason given"
	}
	return strings.Join(parts, " ")
}

// closingLine finds the line with which go test closes a package that has tests.
func closingLine(output []string) string {
	for _, line := range slices.Backward(output) {
		if strings.HasPrefix(line, "ok  \t") || strings.HasPrefix(line, "FAIL\t") {
			return strings.TrimRight(line, "\n")
		}
	}
	return ""
}
