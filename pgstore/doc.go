// Package pgstore keeps grants and operations in PostgreSQL 15 to 18: one store
// for every instance that connects to one primary.
//
//	store, err := pgstore.Open(ctx, "postgres://pawl@db/pawl", &pgstore.Options{Migrate: true})
//
// An admission is one statement and one round trip. It checks deadline, realm,
// epoch and caller, claims the grant and records the operation, both or neither
// [A2, A4]. It runs on connections of its own, whose settings Pawl pins when it
// connects and reads back [A11]; and it reads them once more in the statement
// itself, so that a session that lost one, through a pooler for example, admits
// nothing.
//
// # What is promised, and when
//
// The acknowledgement of a commit means what synchronous_commit and the standbys
// make of it. On one server it survives a crash and a restart. It survives the
// promotion of a standby only where [Options.Replicated] demands that one
// confirms every commit; a cancelled wait for it, which PostgreSQL reports as a
// success with a warning, is "not confirmed" here [A3].
//
// The caller's context stops the caller's wait and nothing else: a statement
// that may commit runs to its end on the store's own time [A3]. Close waits for
// those.
//
// # The caller's own transaction
//
// [Store.AdmitTx], [Store.ReserveTx] and [Store.SettleTx], and their forms for
// database/sql, do their work in a transaction of the caller's in the same
// database, so that admission, business write and outcome are one commit.
// Nothing they answer is confirmed before that commit is.
//
// # What callers must not assume
//
// That a transaction pooler keeps settings: see docs/stores/postgres.md for what
// it must be told. That purge works without a bound: where none is in force on a
// real admission connection, refusal records are kept and the report says why
// [P2].
package pgstore
