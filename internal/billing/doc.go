// Package billing is a payment provider to test against and to demonstrate with: an HTTP service
// that creates account credits, honours idempotency keys the way real providers do, keeps books
// that say how many credits really exist, and misbehaves on request. A tiny client comes with it.
//
// It exists because the interesting failures of an operation happen at the far side of a network
// call: the effect took place and nobody heard of it. A fake inside the test's own process cannot
// be killed, cannot lose an answer on a socket and cannot keep working after its caller has left.
//
// # What it promises, and what it does not
//
// The commit point of a credit is one write that holds the credit and the reply remembered under
// its key, so a killed provider never has one without the other. What happens to the answer
// afterwards (lost, garbled, slow) is a matter of the wire and never changes the books. Work goes
// on when the caller hangs up.
//
//   - Same key and same parameters: the remembered reply, byte for byte, with the header
//     Idempotent-Replayed. Definite refusals are remembered too.
//   - Same key and other parameters: 422, code idempotency_mismatch, also while the first is in flight.
//   - Same key while the first is in flight: refused with 409, or made to wait; or, when the
//     provider is told not to handle concurrent keys atomically, a second credit is made.
//   - A key older than the retention is forgotten, and its next use makes a second credit.
//   - No key: every request makes a credit.
//
// These are the terms an effect's provider contract states [E3], and each can be taken away.
//
// # Time
//
// Retention and look-up lag run on the provider's own clock, which is [Options.Now] plus whatever
// [Provider.Advance] added. The package never reads the wall clock. Delays are real timers; tests
// that need an order of events use gates ([Fault.HoldBefore], [Provider.Await],
// [Provider.Release]) instead of delays.
package billing
