package sim

import (
	"fmt"

	"github.com/pawl-go/pawl"
)

// name is an actor as a trace shows it.
func (w *World) name(id actorID) string {
	if id >= firstRecovery {
		return fmt.Sprintf("recovery of host %d", (id-firstRecovery)/1000)
	}
	return fmt.Sprintf("attempt %d at operation %d", id%100, id/100)
}

func (w *World) describe(m *message) string {
	a := m.answer
	switch {
	case a.err != nil:
		return a.err.Error()
	case m.call == callTakeOver && a.target == none:
		return "nothing is stalled"
	case m.call == callFind:
		return a.found.String()
	case m.call == callCreate:
		return a.out.Verdict().String()
	case m.call == callAdmit && !a.fresh:
		return "already admitted"
	case a.record != nil:
		return fmt.Sprintf("operation %d %s", w.targetOf(a.record.ID), summary(a.record))
	}
	return "yes"
}

func (w *World) targetOf(id pawl.OperationID) int {
	for i := range w.plan.Targets {
		if w.plan.Targets[i].ID == id {
			return i
		}
	}
	return none
}

func summary(o *pawl.Operation) string {
	s := fmt.Sprintf("is %v, fence %d, lease until +%v", o.Status, o.Fence, o.LeaseUntil.Sub(epoch()))
	if o.Deferred != nil {
		s += ", a failure deferred"
	}
	return s
}
