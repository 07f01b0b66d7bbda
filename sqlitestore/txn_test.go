package sqlitestore

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
)

// A change is written only over the fence and the status it was decided on:
// otherwise nothing happens, the log included [O1].
func TestApplyIsConditional(t *testing.T) {
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "pawl.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r := pawl.Reservation{
		Key: "k", Intent: pawl.Intent{Kind: "credit.create", Details: pawl.StoredDetails(`{}`)},
		Caller: pawl.Caller{Principal: "ana"}, Lease: time.Minute, SubmissionWindow: time.Hour,
	}
	reserved, err := s.Reserve(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	for name, stale := range map[string]func(*pawl.Operation){
		"fence": func(o *pawl.Operation) { o.Fence++ }, "status": func(o *pawl.Operation) { o.Status = pawl.StatusUnknown },
	} {
		_, err := write(t.Context(), s, pawl.ErrUnavailable, func(x *txn) (struct{}, error) {
			before := reserved.Operation
			c, err := pawl.RecordOutcome(before, before.Fence, true, pawl.Succeeded("done"), 0, x.now)
			if err != nil {
				return struct{}{}, err
			}
			stale(&before)
			return struct{}{}, x.apply(before, c)
		})
		if !errors.Is(err, errChanged) {
			t.Errorf("another %s: %v, want errChanged", name, err)
		}
	}
	tl, err := s.Log(t.Context(), r.OperationID(), pawl.AsOperator())
	if err != nil || tl.Operation.Status != pawl.StatusAdmitted || len(tl.Entries) != 1 {
		t.Errorf("%v with %d entries, %v", tl.Operation.Status, len(tl.Entries), err)
	}
}
