package billing

import (
	"errors"
	"math/big"
	"strings"
)

// Amounts are decimal strings, never floats: a total that is off by a rounding error would hide, or
// invent, an effect. They are added up as whole millionths.
const (
	maxIntegerDigits  = 15
	maxFractionDigits = 6
	minFractionDigits = 2 // of a printed total: "500.00"
)

// parseAmount reads a positive plain decimal ("250.00", "0.5", "1200") as millionths.
func parseAmount(s string) (*big.Int, error) {
	whole, fraction, dotted := strings.Cut(s, ".")
	switch {
	case !digits(whole) || len(whole) > maxIntegerDigits || (len(whole) > 1 && whole[0] == '0'),
		dotted && (!digits(fraction) || len(fraction) > maxFractionDigits):
		return nil, errors.New("amount must be a plain decimal string of at most 15 digits before and 6 after the point")
	}
	n, ok := new(big.Int).SetString(whole+fraction+strings.Repeat("0", maxFractionDigits-len(fraction)), 10)
	if !ok || n.Sign() <= 0 {
		return nil, errors.New("amount must be greater than zero")
	}
	return n, nil
}

// formatAmount prints millionths with at least two decimals and no others than are needed.
func formatAmount(n *big.Int) string {
	s := n.String()
	if len(s) <= maxFractionDigits {
		s = strings.Repeat("0", maxFractionDigits-len(s)+1) + s
	}
	point := len(s) - maxFractionDigits
	fraction := s[point:]
	for len(fraction) > minFractionDigits && strings.HasSuffix(fraction, "0") {
		fraction = fraction[:len(fraction)-1]
	}
	return s[:point] + "." + fraction
}

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}
