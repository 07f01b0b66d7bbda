//go:build !unix

package jwtgrant

import "context"

// lockRing refuses: without a lock that ends with its holder's process two
// changes could lose a key.
func lockRing(context.Context, string) (unlock func(), err error) {
	return nil, misconfigured("a key ring can be changed on Unix systems only")
}
