//go:build !failpoints

package failpoint

import "testing"

// Without the tag the environment can do nothing.
func TestHitDoesNothing(t *testing.T) {
	for _, n := range Names() {
		t.Setenv(Variable, string(n)+"=kill")
		if err := Hit(n); err != nil {
			t.Errorf("Hit(%s) = %v", n, err)
		}
	}
}
