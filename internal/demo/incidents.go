package demo

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/timeline"
)

// The answers that plans allow. Whether a request that ran nothing finds its
// operation settled already is a matter of moments, and not of any claim.
const (
	succeeded = "200 succeeded"
	pending   = "202 admitted"
	spent     = "409 grant-not-available"
	cutOff    = "502"
	gaveUp    = "504"
)

const (
	firstClick  = `clicks "Apply credit"`
	secondClick = "clicks again"
)

// clicks plays the two clicks of the first incident: the first is given up by the
// gateway while its instance goes on.
func clicks(ctx context.Context, s *stage) (op pawl.OperationID, second answer, err error) {
	if _, err := s.startService(ctx, false); err != nil {
		return op, second, err
	}
	op = pawl.NewOperationID()
	s.note(nameAgent, evClick, firstClick)
	first, err := s.apply(ctx, op)
	if err == nil {
		err = want("the first click", first, gaveUp)
	}
	if err != nil {
		return op, second, err
	}
	s.note(nameAgent, evClick, secondClick)
	second, err = s.apply(ctx, op)
	return op, second, err
}

// localRetry: the second click lands on an instance whose map has not heard of
// the grant.
func localRetry(ctx context.Context, s *stage) error {
	if _, _, err := clicks(ctx, s); err != nil {
		return err
	}
	for _, name := range []string{nameA, nameB} {
		if _, err := s.log.await(ctx, "billing's answer to "+name, by(name, evAnswer)); err != nil {
			return err
		}
	}
	return nil
}

// pawlRetry: the second click names the same operation and is told how it stands.
func pawlRetry(ctx context.Context, s *stage) error {
	op, second, err := clicks(ctx, s)
	if err == nil {
		err = want("the second click", second, pending, succeeded)
	}
	if err != nil {
		return err
	}
	return s.ends(ctx, op)
}

// ends waits for an operation's success and has the agent ask for it, once more
// where the gateway had not noticed yet that an instance is gone.
func (s *stage) ends(ctx context.Context, op pawl.OperationID) error {
	if _, err := s.log.await(ctx, "the operation to succeed", final); err != nil {
		return err
	}
	got, err := s.status(ctx, op)
	if err == nil && got.Code == http.StatusBadGateway {
		got, err = s.status(ctx, op)
	}
	if err != nil {
		return err
	}
	return want("the agent's question", got, succeeded)
}

// presentations plays the second incident up to the restart: one instance, no
// gateway, and a grant that was good for one credit.
func presentations(ctx context.Context, s *stage) (op pawl.OperationID, first answer, err error) {
	if err := s.startProvider(ctx, false); err != nil {
		return op, first, err
	}
	before, url, err := s.startInstance(ctx, nameA)
	if err != nil {
		return op, first, err
	}
	s.door = url
	op = pawl.NewOperationID()
	s.note(nameAgent, evClick, firstClick)
	first, err = s.apply(ctx, op)
	if err == nil {
		err = want("the first presentation", first, succeeded)
	}
	if err != nil {
		return op, first, err
	}
	before.kill()
	s.note(nameStage, evKilled, fmt.Sprintf("%s restarts: process %d is killed", nameA, before.pid()))
	after, url, err := s.startInstance(ctx, nameA)
	if err != nil {
		return op, first, err
	}
	s.note(nameStage, evStarted, fmt.Sprintf("%s is process %d now", nameA, after.pid()))
	s.door = url
	return op, first, nil
}

const stalePage = "presents the same grant again, from a page left open: a new request"

// localRestart: the new process has a new map.
func localRestart(ctx context.Context, s *stage) error {
	_, _, err := presentations(ctx, s)
	if err != nil {
		return err
	}
	s.note(nameAgent, evPresent, stalePage)
	again, err := s.apply(ctx, pawl.NewOperationID())
	if err != nil {
		return err
	}
	return want("the second presentation", again, succeeded)
}

// pawlRestart: as another operation the grant is refused; the first operation is
// still known.
func pawlRestart(ctx context.Context, s *stage) error {
	op, first, err := presentations(ctx, s)
	if err != nil {
		return err
	}
	s.note(nameAgent, evPresent, stalePage)
	again, err := s.apply(ctx, pawl.NewOperationID())
	if err == nil {
		err = want("the second presentation", again, spent)
	}
	if err != nil {
		return err
	}
	s.note(nameAgent, evPresent, "repeats the first request, under its operation id")
	repeated, err := s.apply(ctx, op)
	if err == nil {
		err = want("the repeated request", repeated, succeeded)
	}
	if err == nil && repeated.Credit != first.Credit {
		err = errors.New("the repeated request was told of another credit than the first")
	}
	return err
}

// pawlCrash: the instance dies between the credit and its record.
func pawlCrash(ctx context.Context, s *stage) error {
	a, err := s.startService(ctx, true)
	if err != nil {
		return err
	}
	op := pawl.NewOperationID()
	s.note(nameAgent, evClick, firstClick)
	type reply struct {
		answer
		err error
	}
	clicked := make(chan reply, 1)
	go func() {
		got, err := s.apply(ctx, op)
		clicked <- reply{got, err}
	}()
	_, err = s.log.await(ctx, "the credit", by(nameProvider, evCredited))
	if err == nil {
		s.note(nameStage, evKilled, fmt.Sprintf("kills %s, process %d: the credit exists, its success is not recorded", nameA, a.pid()))
		a.kill()
	}
	first := <-clicked // the gateway's timeout bounds it
	if err = errors.Join(err, first.err); err != nil {
		return err
	}
	if err := want("the first click", first.answer, cutOff, gaveUp); err != nil {
		return err
	}
	s.note(nameAgent, evClick, secondClick)
	second, err := s.apply(ctx, op)
	if err == nil {
		err = want("the second click", second, pending, succeeded)
	}
	if err == nil {
		err = s.ends(ctx, op)
	}
	if err == nil {
		err = s.explain(ctx, op)
	}
	if err != nil {
		return err
	}
	return s.oneCall(ctx, op)
}

// oneCall checks that the provider was asked to create once.
func (s *stage) oneCall(ctx context.Context, op pawl.OperationID) error {
	books, err := s.billing.Books(ctx)
	if err != nil {
		return err
	}
	if n := books.Reference(op.String()).Requests; n != 1 {
		return fmt.Errorf("billing got %d create calls for the operation, not 1", n)
	}
	return nil
}

// explain reads the operation's log from the store, as pawl explain does [M9].
func (s *stage) explain(ctx context.Context, op pawl.OperationID) error {
	if s.o.Separate {
		return errors.New("there is no one store to read the log from")
	}
	store, err := s.o.Open(ctx, s.store, realmName, demoTimings())
	if err != nil {
		return fmt.Errorf("the store could not be opened to read the log: %w", err)
	}
	log, err := store.Log(ctx, op, pawl.AsOperator())
	if err = errors.Join(err, store.Close()); err != nil {
		return fmt.Errorf("the log could not be read: %w", err)
	}
	s.result.operation = op.String()
	s.result.told, s.result.state = timeline.Tell(log), timeline.State(log.Operation)
	return nil
}
