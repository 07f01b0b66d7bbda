// Testsum reads the event stream of `go test -json` and prints what a person wants of it: the line of each package as it
// ends, everything that a failed test wrote, and each reason for which tests were skipped.
//
//	go test -json ./... | testsum [-log FILE]
//	testsum -total FILE
//
// With -log it also appends its counts to FILE, so that several runs can be added up; -total prints the sum of such a
// file: all package lines and, last and alone on its line, "N passed, N failed, N skipped". Subtests count as tests.
//
// The exit status is 0 only if at least one package was tested and nothing failed.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "testsum:", err)
		os.Exit(1)
	}
}

func run(args []string, in io.Reader, out io.Writer) error {
	flags := flag.NewFlagSet("testsum", flag.ContinueOnError)
	logFile := flags.String("log", "", "append the counts to this `file`")
	total := flags.String("total", "", "print the sum of this `file` instead of reading events")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if *total != "" {
		return printTotal(*total, out)
	}
	s := newSummary(out)
	err := s.read(in)
	s.printSkips()
	if *logFile != "" {
		err = errors.Join(err, appendLog(*logFile, s.result))
	}
	return errors.Join(err, s.result.verdict())
}

// result is what one run adds to the log.
type result struct {
	Packages []string `json:"packages"` // the closing line of each package, as go test wrote it
	Passed   int      `json:"passed"`
	Failed   int      `json:"failed"`
	Skipped  int      `json:"skipped"`
}

func (r result) verdict() error {
	switch {
	case r.Failed > 0:
		return fmt.Errorf("%d failed", r.Failed)
	case len(r.Packages) == 0:
		return errors.New("no package was tested")
	}
	return nil
}
