package main

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestSummary(t *testing.T) {
	for _, tc := range []struct {
		name    string
		events  string
		want    []string // pieces of the output
		not     []string // pieces that must not be there
		passed  int
		failed  int
		skipped int
		err     string
	}{
		{
			name: "a passing package shows its line only",
			events: `{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"noise\n"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Output":"PASS\n"}
{"Action":"output","Package":"p","Output":"ok  \tp\t0.1s\n"}
{"Action":"pass","Package":"p"}
`,
			want: []string{"ok  \tp\t0.1s\n"}, not: []string{"noise"}, passed: 1,
		},
		{
			name: "a failed test shows what it wrote",
			events: `{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"got 1, want 2\n"}
{"Action":"fail","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Output":"FAIL\tp\t0.1s\n"}
{"Action":"fail","Package":"p"}
`,
			want: []string{"got 1, want 2\n", "FAIL\tp\t0.1s\n"}, not: []string{"=== RUN"}, failed: 1, err: "1 failed",
		},
		{
			name: "a test that a panic took down has failed",
			events: `{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"panic: boom\n"}
{"Action":"output","Package":"p","Output":"FAIL\tp\t0.1s\n"}
{"Action":"fail","Package":"p"}
`,
			want: []string{"panic: boom"}, failed: 1, err: "1 failed",
		},
		{
			name: "a package that does not build has failed",
			events: `{"Action":"build-output","ImportPath":"p","Output":"p.go:1: undefined: x\n"}
{"Action":"build-fail","ImportPath":"p"}
{"Action":"output","Package":"p","Output":"FAIL\tp [build failed]\n"}
{"Action":"fail","Package":"p","FailedBuild":"p"}
`,
			want: []string{"undefined: x", "FAIL\tp [build failed]"}, failed: 1, err: "1 failed",
		},
		{
			name: "skips are told with their reason",
			events: `{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:3: no engine\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"--- SKIP: TestA (0.00s)\n"}
{"Action":"skip","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Output":"ok  \tp\t0.1s\n"}
{"Action":"pass","Package":"p"}
`,
			want: []string{"skipped: p.TestA: a_test.go:3: no engine\n"}, skipped: 1,
		},
		{
			name:   "a stream that breaks off has failed",
			events: `{"Action":"run","Package":"p","Test":"TestA"}` + "\n",
			failed: 2, err: "in the middle of 1 packages",
		},
		{
			name:   "words of the go command are passed on, and no package is no success",
			events: "go: cannot find main module\n",
			want:   []string{"go: cannot find main module\n"}, err: "no package was tested",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out strings.Builder
			s := newSummary(&out)
			err := s.read(strings.NewReader(tc.events))
			s.printSkips()
			if err == nil {
				err = s.result.verdict()
			}
			checkError(t, err, tc.err)
			for _, w := range tc.want {
				if !strings.Contains(out.String(), w) {
					t.Errorf("got %q, want it to contain %q", out.String(), w)
				}
			}
			for _, w := range tc.not {
				if strings.Contains(out.String(), w) {
					t.Errorf("got %q, want it without %q", out.String(), w)
				}
			}
			got := [3]int{s.result.Passed, s.result.Failed, s.result.Skipped}
			if want := [3]int{tc.passed, tc.failed, tc.skipped}; got != want {
				t.Errorf("passed, failed, skipped: got %v, want %v", got, want)
			}
		})
	}
}

func TestTotalAddsUp(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log")
	for range 2 {
		events := `{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Output":"ok  \tp\t0.1s\n"}
{"Action":"pass","Package":"p"}
`
		if err := run([]string{"-log", file}, strings.NewReader(events), &strings.Builder{}); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	if err := run([]string{"-total", file}, nil, &out); err != nil {
		t.Fatal(err)
	}
	if want := "ok  \tp\t0.1s\nok  \tp\t0.1s\n2 passed, 0 failed, 0 skipped\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func TestBadArguments(t *testing.T) {
	checkError(t, run([]string{"extra"}, nil, &strings.Builder{}), `unexpected argument "extra"`)
	checkError(t, run([]string{"-total", filepath.Join(t.TempDir(), "none")}, nil, &strings.Builder{}), "no such file")
}

func checkError(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("got error %v, want none", err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("got error %v, want one that contains %q", err, want)
	}
}
