package pawl

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// Verdict is what an outcome says. The zero value is unknown, so that whoever
// forgets to say claims nothing.
type Verdict uint8

// The verdicts. Only an owner by takeover may say VerdictNeedsReconciliation.
const (
	VerdictUnknown Verdict = iota
	VerdictFailed
	VerdictSucceeded
	VerdictNeedsReconciliation
)

// String returns the wire name.
func (v Verdict) String() string {
	switch v {
	case VerdictFailed:
		return "failed"
	case VerdictSucceeded:
		return "succeeded"
	case VerdictNeedsReconciliation:
		return "needs_reconciliation"
	default:
		return "unknown"
	}
}

// ParseVerdict reads a wire name.
func ParseVerdict(name string) (Verdict, error) {
	for v := VerdictUnknown; v <= VerdictNeedsReconciliation; v++ {
		if v.String() == name {
			return v, nil
		}
	}
	return VerdictUnknown, invalid(ReasonMalformed, "no such outcome")
}

// Definite reports whether v is failed or succeeded.
func (v Verdict) Definite() bool { return v == VerdictFailed || v == VerdictSucceeded }

// ResultDigest is SHA-256 over the bytes of a result as it was reported, also
// where the result itself was too large to keep.
type ResultDigest [sha256.Size]byte

// String returns lower-case hexadecimal.
func (d ResultDigest) String() string { return hex.EncodeToString(d[:]) }

// Outcome is what an owner or a witness says happened. Its zero value is
// unknown; a success takes the word [Succeeded], a failure the word [Failed].
type Outcome struct {
	verdict Verdict
	result  []byte
	digest  ResultDigest
	reason  string
}

// Succeeded says that the effect exists. The result is kept as bytes; one over
// MaxResult is replaced by its size and SHA-256, and the operation still
// succeeds.
func Succeeded[T ~string | ~[]byte](result T) Outcome {
	raw := bytes.Clone([]byte(result))
	if raw == nil {
		raw = []byte{}
	}
	o := Outcome{verdict: VerdictSucceeded, result: raw, digest: sha256.Sum256(raw)}
	if len(raw) > MaxResult {
		o.result = fmt.Appendf(nil, `{"omitted":true,"sha256":%q,"size":%d}`, o.digest.String(), len(raw))
	}
	return o
}

// Failed says that the provider is certain: nothing happened and nothing will.
// The reason is for the caller; bytes over MaxReason are cut.
func Failed(reason string) Outcome {
	return Outcome{verdict: VerdictFailed, reason: cutNote(reason)}
}

// Unknown says that it cannot be told whether the effect exists.
func Unknown(reason string) Outcome { return Outcome{reason: cutNote(reason)} }

// NeedsReconciliation hands an operation to a person: only an owner by takeover
// may say so.
func NeedsReconciliation(reason string) Outcome {
	return Outcome{verdict: VerdictNeedsReconciliation, reason: cutNote(reason)}
}

// Verdict returns what the outcome says.
func (o Outcome) Verdict() Verdict { return o.verdict }

// Result returns a copy of the result of a success, else nil.
func (o Outcome) Result() []byte { return bytes.Clone(o.result) }

// Digest returns the digest of the reported result of a success.
func (o Outcome) Digest() ResultDigest { return o.digest }

// Reason returns the reason given, if any.
func (o Outcome) Reason() string { return o.reason }

// String tells the verdict only: results do not reach a log by accident [S2].
func (o Outcome) String() string { return "outcome " + o.verdict.String() }

// GoString hides the result as String does.
func (o Outcome) GoString() string { return "pawl.Outcome{" + o.verdict.String() + "}" }

// cutNote makes any text a valid note: whoever reports an outcome must not have
// it refused for its wording.
func cutNote(s string) string {
	clean := make([]rune, 0, min(len(s), MaxReason))
	size := 0
	for _, r := range s {
		if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 {
			r = '\uFFFD'
		}
		size += len(string(r))
		if size > MaxReason {
			break
		}
		clean = append(clean, r)
	}
	return string(clean)
}
