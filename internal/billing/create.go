package billing

import (
	"net/http"

	"github.com/google/uuid"
)

// serveCreate makes a credit, or answers for one that the key remembers.
func (p *Provider) serveCreate(w http.ResponseWriter, r *http.Request) {
	c, err := readCreate(w, r)
	if err != nil {
		problemReply(http.StatusBadRequest, codeInvalid, err.Error()).write(w)
		return
	}
	x := &exchange{w: w, stop: p.stop, gates: &p.gates, fault: p.arrive(CallCreate, c.key, c.Account)}
	got, ok := p.claim(c)
	if !ok {
		x.hangUp()
		return
	}
	end := x.before()
	switch {
	case end != nil:
		p.abandon(c.key, got.own)
		end()
	case got.answer != nil:
		x.finish(*got.answer)
	default:
		if answer, settled := p.settle(c, got.own, x.fault); settled {
			x.finish(answer)
		} else {
			p.abandon(c.key, got.own)
			x.plain(answer)
		}
	}
}

// arrive counts a well-formed call and draws its fault.
func (p *Provider) arrive(call Call, key, account string) Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	nth := p.requests[call][key]
	p.requests[call][key] = nth + 1
	return p.rules.draw(call, key, account, nth)
}

// claim asks the key table until it has an answer or an entry to own; false when the provider
// stopped in the meantime.
func (p *Provider) claim(c createCall) (claim, bool) {
	for {
		p.mu.Lock()
		got := p.keys.claim(c, p.clock(), p.set)
		p.mu.Unlock()
		if got.wait == nil {
			return got, true
		}
		select {
		case <-got.wait:
		case <-p.stop:
			return claim{}, false
		}
	}
}

// settle is the commit point: the credit or the refusal, and what the key remembers, in one write.
// False means that nothing was written and nothing happened.
func (p *Provider) settle(c createCall, own *entry, f Fault) (reply, bool) {
	id, err := uuid.NewRandom()
	if err != nil {
		return problemReply(http.StatusInternalServerError, codeInternal, "no credit id could be made"), false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	made := p.clock()
	e := event{Kind: kindRefusal, Key: c.key, Asked: &own.params, Seen: own.at, Kept: p.keys.keeps(c.key, own)}
	answer := declinedReply(f.Code)
	if f.Do != Decline {
		credit := Credit{"cr_" + id.String(), c.Account, c.Amount, c.Currency, c.key}
		e.Kind, e.Credit, e.Made = kindCredit, &credit, made
		answer = jsonReply(http.StatusCreated, credit)
	}
	kept := answer
	if f.Stored {
		kept = failedReply()
	}
	e.Reply = &kept
	amount, err := parseAmount(c.Amount)
	if err == nil {
		err = p.journal.append(e)
	}
	if err != nil {
		return problemReply(http.StatusInternalServerError, codeInternal, "the books could not be written"), false
	}
	if e.Credit != nil {
		p.ledger.add(record{Credit: *e.Credit, at: made, amount: amount})
	}
	own.reply = &kept
	if e.Kept {
		p.keys[c.key] = own
	}
	close(own.over)
	return answer, true
}

// abandon frees the key of a call that is over without having settled, and lets those go who wait
// for it. Own is nil for a call that owned nothing.
func (p *Provider) abandon(key string, own *entry) {
	if own == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys.abandon(key, own)
	close(own.over)
}
