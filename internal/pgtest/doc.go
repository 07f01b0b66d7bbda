// Package pgtest runs real PostgreSQL for tests: servers of every supported
// version, standbys, a transaction pooler, and a proxy that loses, cuts and
// holds messages where the test says so.
//
// test/postgres/setup installs the servers. [Versions] finds them; what is not
// installed skips the test and says why, or fails it with PAWL_REQUIRE_ALL=1.
// PAWL_POSTGRES=17,18 leaves the other versions out, for quick work at a desk.
//
// A test package that needs no server of its own shares one per version:
//
//	func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }
//
//	func TestAdmit(t *testing.T) {
//		for _, v := range pgtest.Versions(t) {
//			t.Run(v.String(), func(t *testing.T) {
//				dsn := pgtest.Shared(t, v).Database(t)
//				...
//			})
//		}
//	}
//
// A test that kills, configures or replicates starts its own with [Start].
//
// Servers run as an unprivileged user with fsync on, listen on loopback only and
// let everyone in who reaches them. All that a server writes is in one directory,
// in memory where there is plenty and below PAWL_PGTEST_DIR where that is set. A
// server and its directory go with the test that started it; a watchdog process
// removes both when the test process dies without a word.
//
// Methods that take a [testing.TB] fail it when they cannot do what they say, so
// they belong on the test's own goroutine.
package pgtest
