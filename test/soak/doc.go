// Package soak holds the end-to-end tests: worker processes on one shared store, a billing provider with books, and
// everything that goes wrong between them. It has no code of its own.
//
// A worker is this test's own binary, started again with an assignment: a gate with one effect behind a small HTTP API, as
// a program of a user would have it. The test is the customer, the provider and the trouble: it kills workers with kill -9,
// stops them past their lease with SIGSTOP, loses the provider's answers, and presents grants to two workers at once, again
// after lost answers, and again under other operation ids. At the end it reads the provider's books and holds every
// operation, every answer and every credit against them: [audit] is the judge, and the tests in mistakes_test.go show
// that it finds workers guilty that are wrong.
//
//	go test ./test/soak                                the short form, on SQLite and the newest PostgreSQL
//	PAWL_SOAK=2000 go test ./test/soak -run TestSoak   the long form
//	PAWL_SEED=7 …                                      another plan of what is presented and what goes wrong
//
// The seed decides what is presented, which replies are lost and when processes are killed and stopped, counted in grants
// presented. It does not decide how the processes run between those: a run cannot be repeated to the microsecond.
package soak
