package main

import (
	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/service"
)

// operationAsJSON is an operation as --json prints it: the API's form, with what
// operators see.
func operationAsJSON(o pawl.Operation) service.OperationView { return service.ViewOperation(o, true) }

// operationFields is an operation for people.
func operationFields(o pawl.Operation) []field {
	grant := ""
	if !o.Grant.IsZero() {
		grant = o.Grant.ID + " of " + o.Grant.Issuer
	}
	fields := []field{
		{"operation", o.ID.String()},
		{"status", o.Status.String()},
		{"kind", string(o.Intent.Kind)},
		{"details", string(o.Intent.Details.JSON())},
		{"principal", o.Caller.Principal},
		{"tenant", o.Caller.Tenant},
		{"authority", o.Caller.Authority},
		{"grant", grant},
		{"created", when(o.CreatedAt)},
		{"settled", when(o.SettledAt)},
		{"reason", o.Reason},
	}
	if o.Erased {
		fields = append(fields, field{"erased", "details and result were removed on request; pawl explain tells by whom"})
	} else if o.Result != nil {
		fields = append(fields, field{"result", string(o.Result)})
	}
	if !o.Status.Final() {
		fields = append(fields, field{"lease until", when(o.LeaseUntil)}, field{"submit by", when(o.SubmitBy)})
	}
	for _, f := range []struct {
		set  bool
		name string
	}{
		{o.MismatchSeen, "mismatch seen"}, {o.ContradictionSeen, "contradiction seen"}, {o.DivergenceSeen, "divergence seen"},
	} {
		if f.set {
			fields = append(fields, field{f.name, "yes: a second effect may exist"})
		}
	}
	return fields
}
