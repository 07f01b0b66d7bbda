// Package broken holds stores that are wrong in one way each, and says which
// cases of the suite catch each of them: a suite that cannot fail proves nothing.
//
// Every one is the memory store with one call done as a plausible mistake would
// do it, on the same tables. Nothing but the test beside it may use them.
package broken
