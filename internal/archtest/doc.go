// Package archtest holds the tests of the architecture: who may import whom, where the wall clock may be read, which
// names are banned, how long a function may grow, and which code and tests carry each clause of the contract. It has no
// code of its own.
//
// A rule is a row of the table in rules_test.go. Every rule is shown able to fail by small trees in testdata/rules, each
// stating the findings it must bring about and no others. Whoever needs an exception writes it, with its reason, in
// exceptions_test.go; an exception that nothing needs any more fails the test, and so does a row for a package that is
// gone.
//
//	go test ./internal/archtest                  everything
//	go test ./internal/archtest -run Map -v      the matrix: clause, code, tests; case, tests
//	PAWL_UPDATE=1 go test ./internal/archtest    strike off the lists of what is open what is there now
package archtest
