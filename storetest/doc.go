// Package storetest says whether a store keeps the contract. It is the suite
// every store of Pawl passes, and it may be run against anybody's.
//
// # Running it
//
// A [Harness] makes deployments of one store, each with data of its own, and a
// [Deployment] opens instances on that data as so many processes would:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, storetest.Harness{
//			Name: "mystore",
//			Deploy: func(ctx context.Context, c storetest.Config) (*storetest.Deployment, error) {
//				data := newData(c.Timings)
//				return &storetest.Deployment{
//					Open:  func(ctx context.Context) (pawl.Store, error) { return data.open(c.Timings) },
//					Close: data.remove,
//				}, nil
//			},
//			Impossible: map[storetest.Power]string{
//				storetest.PowerPartition: "embedded: there is no network between an instance and its data",
//			},
//		})
//	}
//
// Every situation is a [Case] with an id, such as "C-A1", and the clauses it
// carries; [Run] makes each a subtest, and each of its clauses a subtest of that.
// [Check] returns the same findings as data: [Violation] says which clause broke,
// in which case and how.
//
// # Powers
//
// Some situations need a harness to do what no store can do to itself: move the
// store's clock, lose an answer after the commit, abandon an instance. Each is a
// field of Deployment that may be nil. A case whose [Power] is missing is skipped
// and says so; with PAWL_REQUIRE_ALL=1 the skip is a failure, unless the harness
// names the power in Impossible with the reason.
//
// The most valuable power is the clock. Where the store's clock is the engine's,
// give the tests a replacement that nothing else can reach. [Lossy] wraps an
// instance of a store that has no wire, for OpenLossy.
//
// # What a case relies on
//
// A case uses issuers, tenants, kinds and operation ids of its own, so that data
// may be shared between cases, unless [Config.Fresh] asks for clean data: then
// it counts what is there or moves the clock. It opens instances through the
// deployment only, closes what it opened, and reads the time from [pawl.Facts].
//
// Package broken, beside this one, holds stores that are wrong in one way each,
// with the cases that catch them: a suite that cannot fail proves nothing.
package storetest
