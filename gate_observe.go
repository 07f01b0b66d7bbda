package pawl

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
)

// tell reports an event to the observer and the log. An error without a class is
// a defect, and an alarm of its own [A7].
func (g *Gate) tell(ctx context.Context, e Event) {
	g.observer.Observe(ctx, e)
	g.logger.LogAttrs(ctx, levelOf(e), "pawl: "+string(e.Type), attrsOf(e)...)
	if e.Type == EventDefect || e.Err == nil {
		return
	}
	if _, classed := Row(e.Err); !classed && !stopped(e.Err) {
		e.Type = EventDefect
		g.tell(ctx, e)
	}
}

func (g *Gate) tellAdmission(ctx context.Context, k Kind, a Admitted, err error) {
	g.tell(ctx, Event{
		Type: EventAdmission, Operation: a.Operation.ID, Kind: k, Fence: a.Owner.Fence, Fresh: a.Fresh,
		Status: a.Operation.Status, Reason: ReasonOf(err), Err: err,
	})
}

// levelOf says how loud an event is: what a person must look at is an error,
// what may come to that is a warning.
func levelOf(e Event) slog.Level {
	switch {
	case e.Type == EventDefect, e.Type == EventSuspicious:
		return slog.LevelError
	case e.Type == EventHandOver, e.Type == EventRecovery && e.Err != nil, e.Type == EventPurge && e.Err != nil:
		return slog.LevelWarn
	case e.Type == EventSubmit && e.Verdict == VerdictUnknown:
		return slog.LevelWarn
	}
	return slog.LevelDebug
}

// attrsOf chooses what a log may hold: ids, words of ours and the type of a
// foreign error, never its text [S2].
func attrsOf(e Event) []slog.Attr {
	var attrs []slog.Attr
	add := func(key, value string) {
		if value != "" {
			attrs = append(attrs, slog.String(key, value))
		}
	}
	if !e.Operation.IsZero() {
		add("operation", e.Operation.String())
	}
	add("kind", string(e.Kind))
	if e.Fence > 0 {
		attrs = append(attrs, slog.Uint64("fence", e.Fence))
	}
	if e.Status != 0 {
		add("status", e.Status.String())
	}
	if e.Type == EventSubmit || e.Type == EventRecord || e.Type == EventSettle || e.Type == EventSuspicious {
		add("verdict", e.Verdict.String())
	}
	if e.Fresh {
		attrs = append(attrs, slog.Bool("fresh", true))
	}
	add("disposition", string(e.Disposition))
	add("reason", string(e.Reason))
	if e.Count > 0 {
		attrs = append(attrs, slog.Int("count", e.Count))
	}
	if e.Elapsed > 0 {
		attrs = append(attrs, slog.Duration("elapsed", e.Elapsed))
	}
	if e.Err != nil {
		add("error", nameOf(e.Err))
	}
	add("note", e.Note)
	return attrs
}

// nameOf is the class of an error of ours, and the type of any other.
func nameOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Class.Error()
	}
	return fmt.Sprintf("%T", err)
}
