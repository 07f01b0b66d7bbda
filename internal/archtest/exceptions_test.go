package archtest

import "strings"

// exception lets one file, or a folder and all below it, off one rule. Where name is given it must be the finding's.
type exception struct {
	rule string
	path string // a file, or a folder with a slash at its end
	name string
	why  string
}

func (e exception) covers(f finding) bool {
	inside := e.path == f.path || strings.HasSuffix(e.path, "/") && strings.HasPrefix(f.path, e.path)
	return e.rule == f.rule && inside && (e.name == "" || e.name == f.name)
}

// exceptions is the only place where a rule is bent.
func exceptions() []exception {
	return []exception{
		{"wall-clock", "monotonic.go", "", "the owner's own monotonic time [O5] needs a reading to count from; it is never compared with the store's"},
		{"wall-clock", "internal/pace/", "", "how long a pause is decides nothing"},
		{"wall-clock", "memstore/store.go", "time.Now", "this store lives in its process, so the process's clock is the store's"},
		{"wall-clock", "jwtgrant/", "time.Now", "the token filter: judges the age of proofs of possession and of cached keys, never a grant [A4]"},
		{"no-package-variables", "internal/failpoint/failpoint_on.go", "armed", "only under the build tag failpoints: one process has one environment to set it from"},
		{"no-machine-paths", "internal/archtest/", "", "names them to forbid them"},
	}
}
