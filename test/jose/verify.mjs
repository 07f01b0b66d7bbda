// Verifies grants with another JOSE implementation, as a program that is not written in Go would. Reads
// {jwks, issuer, realm, now, tokens} and prints for each token {claims} or {error}.
import { input, jose } from './jose.mjs'

const { jwks, issuer, realm, now, tokens } = await input()
const keys = jose.createLocalJWKSet(jwks)

const verify = async (token) => {
  try {
    const { payload } = await jose.jwtVerify(token, keys, {
      issuer,
      audience: realm,
      typ: 'pawl-grant+jwt',
      algorithms: ['EdDSA', 'ES256', 'PS256', 'RS256'],
      requiredClaims: ['sub', 'jti', 'iat', 'exp', 'authorization_details'],
      currentDate: new Date(now * 1000),
    })
    return { claims: payload }
  } catch (e) {
    return { error: e.code ?? String(e) }
  }
}

console.log(JSON.stringify(await Promise.all(tokens.map(verify))))
