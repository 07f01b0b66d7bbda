package main

import (
	"strconv"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
)

// timingField is one field of pawl.Timings that a flag may set, by the name of
// the table in docs/timings.md.
type timingField struct {
	name string
	of   func(*pawl.Timings) *time.Duration
}

func timingFields() []timingField {
	return []timingField{
		{"store_call_timeout", func(t *pawl.Timings) *time.Duration { return &t.StoreCallTimeout }},
		{"lease_margin", func(t *pawl.Timings) *time.Duration { return &t.LeaseMargin }},
		{"recovery_interval", func(t *pawl.Timings) *time.Duration { return &t.RecoveryInterval }},
		{"admission_bound", func(t *pawl.Timings) *time.Duration { return &t.AdmissionBound }},
		{"replication_wait_bound", func(t *pawl.Timings) *time.Duration { return &t.ReplicationWaitBound }},
		{"clock_step_bound", func(t *pawl.Timings) *time.Duration { return &t.ClockStepBound }},
		{"purge_margin", func(t *pawl.Timings) *time.Duration { return &t.PurgeMargin }},
		{"max_grant_lifetime", func(t *pawl.Timings) *time.Duration { return &t.MaxGrantLifetime }},
		{"issue_skew", func(t *pawl.Timings) *time.Duration { return &t.IssueSkew }},
		{"retain_operations", func(t *pawl.Timings) *time.Duration { return &t.RetainOperations }},
		{"retain_attempts", func(t *pawl.Timings) *time.Duration { return &t.RetainAttempts }},
		{"retain_results", func(t *pawl.Timings) *time.Duration { return &t.RetainResults }},
		{"key_lifetime", func(t *pawl.Timings) *time.Duration { return &t.KeyLifetime }},
		{"effect_timeout", func(t *pawl.Timings) *time.Duration { return &t.Default.EffectTimeout }},
		{"find_timeout", func(t *pawl.Timings) *time.Duration { return &t.Default.FindTimeout }},
		{"execution_lease", func(t *pawl.Timings) *time.Duration { return &t.Default.ExecutionLease }},
		{"recovery_lease", func(t *pawl.Timings) *time.Duration { return &t.Default.RecoveryLease }},
		{"submission_window", func(t *pawl.Timings) *time.Duration { return &t.Default.SubmissionWindow }},
		{"backoff_base", func(t *pawl.Timings) *time.Duration { return &t.Default.BackoffBase }},
		{"backoff_cap", func(t *pawl.Timings) *time.Duration { return &t.Default.BackoffCap }},
	}
}

// setTiming applies one field=duration. admission_leeway and
// admission_leeway.VERSION set a leeway policy; max_takeovers is a number.
func setTiming(t *pawl.Timings, setting string) error {
	name, value, ok := strings.Cut(setting, "=")
	if !ok {
		return usage("--timing is FIELD=DURATION, not " + strconv.Quote(setting))
	}
	if name == "max_takeovers" {
		n, err := strconv.Atoi(value)
		if err != nil {
			return usage("--timing max_takeovers is a number")
		}
		t.Default.MaxTakeovers = n
		return nil
	}
	d, err := time.ParseDuration(value)
	if err != nil {
		return usage("--timing " + name + ": " + strconv.Quote(value) + " is not a duration, such as 30s")
	}
	if version, ok := strings.CutPrefix(name, "admission_leeway"); ok && (version == "" || version[0] == '.') {
		t.Leeways[strings.TrimPrefix(version, ".")] = d
		return nil
	}
	var known []string
	for _, f := range timingFields() {
		if f.name == name {
			*f.of(t) = d
			return nil
		}
		known = append(known, f.name)
	}
	return usage("--timing has no field " + strconv.Quote(name) + "; there are admission_leeway, max_takeovers, " + strings.Join(known, ", "))
}
