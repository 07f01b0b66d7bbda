package pgstore

import (
	"context"
)

// The words of a transaction. Its level is said each time: what the role's or
// database's default is does not matter [A11].
const (
	beginSQL     = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
	beginReadSQL = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY" // one snapshot for several reads
	commitSQL    = "COMMIT"
	rollbackSQL  = "ROLLBACK"
)

// transaction runs the last steps of a transaction and commits, in one round
// trip. A step that fails keeps the commit from running. An error of the commit
// itself leaves open whether it happened, unless the server says so.
func transaction(ctx context.Context, on session, steps []step) error {
	var tag string
	all := make([]step, 0, len(steps)+1)
	all = append(append(all, steps...), step{sql: commitSQL, tag: &tag})
	if err := on.run(ctx, all...); err != nil {
		rollBack(ctx, on)
		return err
	}
	if tag != commitSQL { // the server answers ROLLBACK where the transaction had failed
		return errRolledBack
	}
	return nil
}

// rollBack gives a transaction up. Where that fails, the connection is of no more
// use and its pool sees that by its state.
func rollBack(ctx context.Context, on session) {
	_ = on.run(ctx, step{sql: rollbackSQL})
}
