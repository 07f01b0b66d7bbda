package billing

import (
	"cmp"
	"maps"
	"math/big"
	"slices"
	"time"
)

// Credit is one credit that exists. Reference is the idempotency key it was made under, empty when
// there was none. Amount is the caller's own decimal string.
type Credit struct {
	ID        string `json:"id"`
	Account   string `json:"account"`
	Amount    string `json:"amount"`
	Currency  string `json:"currency"`
	Reference string `json:"reference"`
}

// Books are what really happened: every credit made, in the order made, and their exact totals. A
// test counts effects here and nowhere else.
type Books struct {
	Credits    []Credit         `json:"credits"`
	Accounts   []AccountTotal   `json:"accounts"`
	References []ReferenceTotal `json:"references"`
}

// AccountTotal adds up one account in one currency.
type AccountTotal struct {
	Account  string `json:"account"`
	Currency string `json:"currency"`
	Credits  int    `json:"credits"`
	Total    string `json:"total"`
}

// ReferenceTotal adds up one idempotency key. Credits above one is a duplicate effect. Requests
// counts the well-formed create calls that arrived under the key since this process started,
// whatever became of them.
type ReferenceTotal struct {
	Reference string            `json:"reference"`
	Requests  int               `json:"requests"`
	Credits   int               `json:"credits"`
	Totals    map[string]string `json:"totals"` // by currency
}

// Total is the sum credited to an account in a currency, "0.00" when there is none.
func (b Books) Total(account, currency string) string {
	for _, t := range b.Accounts {
		if t.Account == account && t.Currency == currency {
			return t.Total
		}
	}
	return "0.00"
}

// Reference finds the figures of one idempotency key; all zero when it was never used.
func (b Books) Reference(key string) ReferenceTotal {
	for _, t := range b.References {
		if t.Reference == key {
			return t
		}
	}
	return ReferenceTotal{Reference: key}
}

// record is a credit with the provider's time of making, which decides when a look-up shows it.
type record struct {
	Credit
	at     time.Time
	amount *big.Int
}

// ledger holds the credits; the provider's lock guards it.
type ledger struct {
	records     []record
	byReference map[string][]int // positions in records
}

func (l *ledger) add(r record) {
	if l.byReference == nil {
		l.byReference = make(map[string][]int)
	}
	if r.Reference != "" {
		l.byReference[r.Reference] = append(l.byReference[r.Reference], len(l.records))
	}
	l.records = append(l.records, r)
}

// visible lists the credits under a reference that were made at or before a time, oldest first.
func (l *ledger) visible(reference string, until time.Time) []Credit {
	found := []Credit{}
	for _, i := range l.byReference[reference] {
		if r := l.records[i]; !r.at.After(until) {
			found = append(found, r.Credit)
		}
	}
	return found
}

type accountKey struct{ account, currency string }

// sum is a running total with its count.
type sum struct {
	n     int
	total big.Int
}

func (s *sum) add(amount *big.Int) {
	s.n++
	s.total.Add(&s.total, amount)
}

// books adds everything up; requests are the create calls that arrived, by key.
func (l *ledger) books(requests map[string]int) Books {
	accounts := make(map[accountKey]*sum)
	references := make(map[string]map[string]*sum)
	for key := range requests {
		references[key] = make(map[string]*sum)
	}
	b := Books{Credits: make([]Credit, 0, len(l.records)), Accounts: []AccountTotal{}, References: []ReferenceTotal{}}
	for _, r := range l.records {
		b.Credits = append(b.Credits, r.Credit)
		sumOf(accounts, accountKey{r.Account, r.Currency}).add(r.amount)
		if r.Reference == "" {
			continue
		}
		if references[r.Reference] == nil {
			references[r.Reference] = make(map[string]*sum)
		}
		sumOf(references[r.Reference], r.Currency).add(r.amount)
	}
	for k, s := range accounts {
		b.Accounts = append(b.Accounts, AccountTotal{k.account, k.currency, s.n, formatAmount(&s.total)})
	}
	slices.SortFunc(b.Accounts, func(x, y AccountTotal) int {
		return cmp.Or(cmp.Compare(x.Account, y.Account), cmp.Compare(x.Currency, y.Currency))
	})
	for _, key := range slices.Sorted(maps.Keys(references)) {
		t := ReferenceTotal{Reference: key, Requests: requests[key], Totals: make(map[string]string)}
		for currency, s := range references[key] {
			t.Credits += s.n
			t.Totals[currency] = formatAmount(&s.total)
		}
		b.References = append(b.References, t)
	}
	return b
}

func sumOf[K comparable](m map[K]*sum, k K) *sum {
	if m[k] == nil {
		m[k] = new(sum)
	}
	return m[k]
}
