package billing

import (
	"encoding/json"
	"net/http"
)

// credits is the answer to a look-up. Nothing found is an empty list, so that no error status can
// ever be read as "nothing there".
type credits struct {
	Credits []map[string]string `json:"credits"`
}

// serveLookup lists the credits made under a reference that are visible by now.
func (p *Provider) serveLookup(w http.ResponseWriter, r *http.Request) {
	reference := r.URL.Query().Get("reference")
	if !validKey(reference) {
		problemReply(http.StatusBadRequest, codeInvalid, "reference must be an idempotency key").write(w)
		return
	}
	x := &exchange{w: w, stop: p.stop, gates: &p.gates, fault: p.arrive(CallLookup, reference, "")}
	if end := x.before(); end != nil {
		end()
		return
	}
	x.finish(p.find(reference))
}

func (p *Provider) find(reference string) reply {
	p.mu.Lock()
	defer p.mu.Unlock()
	look := p.set.Lookup
	switch look.Mode {
	case LookupAbsent:
		return problemReply(http.StatusNotFound, codeNoLookup, "there is no such resource")
	case LookupUnsupported:
		return problemReply(http.StatusNotImplemented, codeNoLookup, "look-up is not supported")
	case LookupBroken:
		return failedReply()
	}
	answer := credits{Credits: []map[string]string{}}
	for _, c := range p.ledger.visible(reference, p.clock().Add(-look.Lag)) {
		shown, err := members(c)
		if err != nil {
			return failedReply()
		}
		for _, name := range look.Omit {
			delete(shown, name)
		}
		answer.Credits = append(answer.Credits, shown)
	}
	return jsonReply(http.StatusOK, answer)
}

// members is a credit as the JSON object it is on the wire.
func members(c Credit) (map[string]string, error) {
	raw, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	var m map[string]string
	return m, json.Unmarshal(raw, &m)
}
