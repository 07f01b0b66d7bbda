// Package sim tries the protocol in many orders of events, and a small part of it
// in every order.
//
// A [World] is one store, one provider, clocks, a network and the processes of
// some hosts. It is a value: [World.Do] makes one [Move] happen and nothing else
// does, so that the same moves always give the same world. What a store decides
// is decided by the pure functions of package pawl; what a Gate does between two
// calls is written here a second time, as a program with a place for every point
// at which a process may pause or die. A test plays generated schedules through
// both and compares the records.
//
// A [Run] draws moves from a seed, with weights that are themselves drawn, until
// a rule is broken or the steps are over; then faults stop, and what is left must
// come to an end. [Explore] makes every order of the moves of a small world. After
// every step an auditor holds the world to the [Rule]s. It shares no code with
// what it audits. A [Mistake] makes one thing wrong, so that the tests can show
// that each rule is able to fail.
package sim
