package sqlitestore_test

import (
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/sqlitestore"
)

// BenchmarkAdmit admits fresh tokens: alone, and with many callers waiting, whose
// admissions share commits.
func BenchmarkAdmit(b *testing.B) {
	for _, callers := range []int{1, 64, 256} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			s, err := sqlitestore.Open(b.Context(), filepath.Join(b.TempDir(), "pawl.db"), nil)
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			var left atomic.Int64
			left.Store(int64(b.N))
			b.ResetTimer()
			var all sync.WaitGroup
			for range callers {
				all.Go(func() {
					for left.Add(-1) >= 0 {
						got, err := s.Admit(b.Context(), admission(s, "token", time.Minute))
						if err != nil || !got.Fresh {
							b.Errorf("%v %v", got.Fresh, err)
							return
						}
					}
				})
			}
			all.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "admissions/s")
		})
	}
}

// admission is one of a fresh token for a fresh operation.
func admission(s *sqlitestore.Store, kind pawl.Kind, lifetime time.Duration) pawl.Admission {
	intent := pawl.Intent{Kind: kind, Details: pawl.StoredDetails(`{"account":"A-1187","amount":"250.00"}`)}
	now := time.Now().Truncate(time.Second)
	return pawl.Admission{
		Grant: pawl.Grant{
			Form: pawl.FormToken, Key: pawl.GrantKey{Issuer: "issuer", ID: pawl.NewOperationID().String()},
			Realm: s.Realm(), Subject: "ana", Intent: intent, IssuedAt: now, ExpiresAt: now.Add(lifetime),
		},
		OperationID: pawl.NewOperationID(), Intent: intent, Caller: pawl.Caller{Principal: "ana"},
		Lease: 30 * time.Second, SubmissionWindow: 10 * time.Minute,
	}
}
