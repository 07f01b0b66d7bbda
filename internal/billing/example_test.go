package billing_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"

	"github.com/pawl-go/pawl/internal/billing"
)

// An answer is lost after its effect: the caller cannot tell, the books can, and the key makes the
// repetition safe.
func Example() {
	ctx := context.Background()
	provider, err := billing.New(&billing.Options{
		Faults: []billing.Fault{{Key: "op-1", Times: 1, Do: billing.LostAfter}},
	})
	if err != nil {
		panic(err)
	}
	defer provider.Close()
	server := httptest.NewServer(provider)
	defer server.Close()
	client := &billing.Client{BaseURL: server.URL}

	_, err = client.Create(ctx, "op-1", "acc_1", "250.00", "USD")
	fmt.Println("heard:", err == nil, "definite:", errors.Is(err, billing.ErrDeclined))
	fmt.Println("on the books:", provider.Books().Total("acc_1", "USD"))

	_, err = client.Create(ctx, "op-1", "acc_1", "250.00", "USD")
	fmt.Println("heard:", err == nil)
	fmt.Println("on the books:", provider.Books().Total("acc_1", "USD"))
	// Output:
	// heard: false definite: false
	// on the books: 250.00
	// heard: true
	// on the books: 250.00
}
