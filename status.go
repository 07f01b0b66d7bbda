package pawl

// Status is what the record says of an operation. Its value is its rank: in
// settlement a higher one wins over a lower one. The zero value is no status
// and never valid.
type Status uint8

// The statuses by rank. Automatic recovery acts on the first two, the next two
// wait for a person or for evidence, the last two are final.
const (
	StatusAdmitted            Status = 10
	StatusUnknown             Status = 20
	StatusNeedsReconciliation Status = 30
	StatusConflict            Status = 40
	StatusFailed              Status = 50
	StatusSucceeded           Status = 60
)

// Statuses returns all statuses by rank.
func Statuses() []Status {
	return []Status{
		StatusAdmitted, StatusUnknown, StatusNeedsReconciliation,
		StatusConflict, StatusFailed, StatusSucceeded,
	}
}

// String returns the wire name.
func (s Status) String() string {
	switch s {
	case StatusAdmitted:
		return "admitted"
	case StatusUnknown:
		return "unknown"
	case StatusNeedsReconciliation:
		return "needs_reconciliation"
	case StatusConflict:
		return "conflict"
	case StatusFailed:
		return "failed"
	case StatusSucceeded:
		return "succeeded"
	}
	return "invalid"
}

// ParseStatus reads a wire name.
func ParseStatus(name string) (Status, error) {
	for _, s := range Statuses() {
		if s.String() == name {
			return s, nil
		}
	}
	return 0, invalid(ReasonMalformed, "no such status")
}

// Valid reports whether s is one of the statuses.
func (s Status) Valid() bool { return s.String() != "invalid" }

// Final reports whether s is failed or succeeded.
func (s Status) Final() bool { return s == StatusFailed || s == StatusSucceeded }

// Open reports whether an owner, and automatic recovery, may act: admitted or
// unknown [O2, O5].
func (s Status) Open() bool { return s == StatusAdmitted || s == StatusUnknown }

// MarshalText implements encoding.TextMarshaler.
func (s Status) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Status) UnmarshalText(b []byte) (err error) {
	*s, err = ParseStatus(string(b))
	return err
}
