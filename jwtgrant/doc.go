// Package jwtgrant is the token form of a grant: signing, verifying, and the
// keys for both.
//
// A token is a JWS in compact form (RFC 7515) whose header has its own type,
// [TokenType], so that no other token of the same issuer can pass for a grant.
// Its claims are:
//
//	iss, sub, jti    issuer, subject and grant id
//	aud              the realm of the one store that may admit it, exactly [A1]
//	iat, nbf, exp    whole seconds; nbf may be absent
//	tenant           the subject's tenant; absent: none
//	authority        the subject's authentication issuer; absent: not told apart
//	leeway_policy    version of the leeway it was issued under; absent: the first
//	cnf              {"jkt":…}: bound to the holder's key (RFC 9449); absent: bearer
//	authorization_details
//	                 [{"type":kind,"details":{…}}], the one approved intent (RFC 9396)
//
// Other claims are allowed and mean nothing. Whether an issuer's ids are unique
// per tenant is for whoever trusts it to declare, never for a token to say [A5].
//
// An [Issuer] signs what a store wrote; a [Verifier] turns a token back into the
// same grant, or refuses. It says nothing of expiry: the store's clock decides
// that, in the write that admits [A4]. Nothing here writes anything, so a
// request refused here leaves the grant unspent [A9].
//
// Errors have the classes of package pawl. They carry reasons, never a token, a
// claim's value or a key [S2].
package jwtgrant
