package billing

import "time"

// entry is one use of an idempotency key: in flight until it has a reply.
type entry struct {
	params
	at    time.Time     // when the key was first seen; retention counts from here
	over  chan struct{} // closed when the entry is settled or abandoned
	reply *reply        // nil while in flight
}

// claim says what a create call may do: exactly one field is set.
type claim struct {
	own    *entry          // perform the effect, then settle or abandon this entry
	answer *reply          // nothing to do, this is the answer
	wait   <-chan struct{} // ask again once this is closed
}

// keyTable remembers idempotency keys; the provider's lock guards it.
type keyTable map[string]*entry

// claim decides between replay, refusal and effect. Parameters are compared before anything else,
// so a wrong request under a key in flight hears of the mismatch and not of the flight.
func (t keyTable) claim(c createCall, now time.Time, set Settings) claim {
	t.prune(c.key, now, set.Retention)
	old := t[c.key]
	fresh := &entry{params: c.params, at: now, over: make(chan struct{})}
	switch {
	case c.key == "":
		return claim{own: fresh}
	case old == nil || old.reply == nil && set.Concurrency == ConcurrencyRacy:
		// A racy provider looks for a remembered reply and remembers nothing until it has one; this
		// is the gap through which a second effect slips.
		if set.Concurrency != ConcurrencyRacy {
			t[c.key] = fresh
		}
		return claim{own: fresh}
	case old.params != c.params:
		a := problemReply(422, codeMismatch, "this idempotency key was used with other parameters")
		return claim{answer: &a}
	case old.reply != nil:
		a := *old.reply
		a.replayed = true
		return claim{answer: &a}
	case set.Concurrency == ConcurrencyWait:
		return claim{wait: old.over}
	default:
		a := problemReply(409, codeInProgress, "a request with this idempotency key is in flight")
		return claim{answer: &a}
	}
}

// keeps reports whether settling this entry makes it what its key remembers. Of two racing calls the
// first to finish is remembered.
func (t keyTable) keeps(key string, e *entry) bool {
	old := t[key]
	return key != "" && (old == nil || old == e || old.reply == nil)
}

// abandon frees the key of a call that ended without an effect or a refusal.
func (t keyTable) abandon(key string, e *entry) {
	if t[key] == e {
		delete(t, key)
	}
}

// prune forgets one key if its retention is over. A call in flight is never forgotten.
func (t keyTable) prune(key string, now time.Time, retention time.Duration) {
	if e := t[key]; e != nil && e.reply != nil && now.Sub(e.at) >= retention {
		delete(t, key)
	}
}

func (t keyTable) pruneAll(now time.Time, retention time.Duration) {
	for key := range t {
		t.prune(key, now, retention)
	}
}
