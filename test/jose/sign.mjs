// Issues grants with another JOSE implementation, as an issuer that is not written in Go would. Reads
// {issuer, realm, iat, exp, subject, tenant, kind, details, request} and prints {jwks, tokens} with a token for each
// algorithm, and {bound} with a token that is bound to a holder's key and the holder's proof for the request.
import { createHash } from 'node:crypto'
import { input, jose } from './jose.mjs'

const ask = await input()
const claims = (id, more) => ({
  iss: ask.issuer, sub: ask.subject, aud: ask.realm, jti: id, iat: ask.iat, exp: ask.exp, tenant: ask.tenant,
  authorization_details: [{ type: ask.kind, details: ask.details }],
  ...more,
})

const jwks = { keys: [] }
const tokens = []
let issue
for (const alg of ['EdDSA', 'ES256', 'PS256', 'RS256']) {
  const { publicKey, privateKey } = await jose.generateKeyPair(alg, { extractable: true })
  const kid = `${alg}-1`
  jwks.keys.push({ ...(await jose.exportJWK(publicKey)), kid, alg, use: 'sig' })
  issue = (payload) => new jose.SignJWT(payload).setProtectedHeader({ alg, kid, typ: 'pawl-grant+jwt' }).sign(privateKey)
  tokens.push({ id: `grant-${alg}`, token: await issue(claims(`grant-${alg}`)) })
}

const holder = await jose.generateKeyPair('ES256', { extractable: true })
const jwk = await jose.exportJWK(holder.publicKey)
const token = await issue(claims('grant-bound', { cnf: { jkt: await jose.calculateJwkThumbprint(jwk) } }))
const proof = await new jose.SignJWT({
  jti: 'proof-1', htm: ask.request.method, htu: ask.request.url, ath: createHash('sha256').update(token).digest('base64url'),
})
  .setIssuedAt(ask.iat)
  .setProtectedHeader({ typ: 'dpop+jwt', alg: 'ES256', jwk })
  .sign(holder.privateKey)

console.log(JSON.stringify({ jwks, tokens, bound: { token, proof } }))
