// Package service is Pawl over HTTP: JSON requests in, JSON or problem documents
// (RFC 9457) out.
//
// A caller authenticates with a bearer token, which stands for a [Credential]:
// its roles, and the tenants, kinds and issuers it is limited to. The limits hold
// on every call [S1]. An executor is trusted to name the end user it acts for,
// within them; identity never travels in a URL.
//
// Bodies are strict: exact member names, no unknown or duplicate ones, no
// replaced bytes; whatever is malformed is 400 and nothing was written [A9]. A
// problem document names one of a small set of stable reasons; the exact one is
// for the log [S2]. Neither holds a token, details or a result.
//
// The package knows a [pawl.Gate] and no store.
package service
