package jwtgrant

// proofType is the typ of a proof of possession (RFC 9449).
const proofType = "dpop+jwt"
