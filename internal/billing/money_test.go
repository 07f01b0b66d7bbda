package billing

import (
	"math/big"
	"testing"
)

func TestAmounts(t *testing.T) {
	for _, bad := range []string{
		"", "0", "0.00", "-1", "+1", "1e3", "01", "00.5", ".5", "5.", "1,00", " 1", "1 ", "0x1", "1_0",
		"1.0000001", "1234567890123456", "١", "1.2.3", "NaN",
	} {
		if n, err := parseAmount(bad); err == nil {
			t.Errorf("%q accepted as %s", bad, n)
		}
	}
	for in, want := range map[string]string{
		"250": "250.00", "250.0": "250.00", "250.00": "250.00", "0.5": "0.50", "0.000001": "0.000001",
		"1.230000": "1.23", "900719925474099.3": "900719925474099.30", "999999999999999.999999": "999999999999999.999999",
	} {
		n, err := parseAmount(in)
		if err != nil {
			t.Errorf("%q: %v", in, err)
			continue
		}
		if got := formatAmount(n); got != want {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
}

// Binary floating point gets each of these totals wrong.
func TestTotalsAreExact(t *testing.T) {
	for _, row := range []struct {
		amounts []string
		want    string
	}{
		{nil, "0.00"},
		{[]string{"0.10", "0.20"}, "0.30"},
		{[]string{"250.00", "250.00"}, "500.00"},
		{[]string{"999999999999999.99", "0.01"}, "1000000000000000.00"},
		{[]string{"0.000001", "999999999999999"}, "999999999999999.000001"},
	} {
		var total big.Int
		for _, a := range row.amounts {
			n, err := parseAmount(a)
			if err != nil {
				t.Fatal(err)
			}
			total.Add(&total, n)
		}
		if got := formatAmount(&total); got != row.want {
			t.Errorf("%v: got %s, want %s", row.amounts, got, row.want)
		}
	}
}
