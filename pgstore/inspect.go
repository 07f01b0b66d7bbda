package pgstore

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-go/pawl"
)

// Inspect reads the facts of a deployment that [Open] may refuse, and changes
// nothing: no table, store or policy is made. What Open would refuse is Unsafe
// among them, all of it and not only what comes first. It connects as for an
// admission, to a replica too.
//
// Errors, where nothing can be read: ErrMisconfigured for tables that are missing
// or of another version, ErrUnavailable where the server could not be asked.
func Inspect(ctx context.Context, dsn string, o *Options) (pawl.Facts, error) {
	resolved, err := o.resolve()
	if err != nil {
		return pawl.Facts{}, err
	}
	texts, err := loadStatements(resolved.Schema)
	if err != nil {
		return pawl.Facts{}, err
	}
	config, err := parse(dsn)
	if err != nil {
		return pawl.Facts{}, err
	}
	s := &Store{settings: resolved, sql: texts, patience: patienceFor(resolved.timings)}
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	if err := asking(ctx, config.ConnConfig, s.greet); err != nil {
		return pawl.Facts{}, err
	}
	s.pin(config.ConnConfig, forAdmissions)
	var d deployment
	err = asking(ctx, config.ConnConfig, func(ctx context.Context, conn *pgx.Conn) (err error) {
		d, err = s.readDeployment(ctx, pgxSession{conn})
		return err
	})
	if err != nil {
		return pawl.Facts{}, err
	}
	stored, err := d.identity.policy.agreed()
	if err != nil {
		return pawl.Facts{}, err
	}
	_, differs := s.nextPolicy(stored)
	return s.facts(d, stored, s.pinned(d.session.storeID.String(), d.identity.realm), differs), nil
}

// greet learns what must be known before anything is pinned, and whether there is
// something to read.
func (s *Store) greet(ctx context.Context, conn *pgx.Conn) error {
	found, err := s.probe(ctx, conn)
	if err != nil {
		return err
	}
	return s.readable(ctx, conn, found)
}
