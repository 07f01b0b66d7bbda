// Package jose holds the token form of a grant against another implementation
// of JOSE, npm's jose on Node.js, in both directions: what Pawl signs verifies
// there, and what is signed there Pawl verifies. verify.mjs and sign.mjs show how
// a program that is not written in Go does either. The script setup fetches the
// package; without it, or without Node.js, the tests skip, and with
// PAWL_REQUIRE_ALL=1 they fail.
package jose
