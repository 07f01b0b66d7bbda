// Prints jwtgrant/testdata/vectors.json. It shares nothing with the Go code and needs no package: tokens are put
// together by hand and signed with Ed25519, whose signatures are the same each time. The keys are fixed and public: for
// tests only.
//
//   node vectors.mjs > ../../jwtgrant/testdata/vectors.json
import { createHash, createHmac, createPrivateKey, createPublicKey, sign } from 'node:crypto'

const sha256 = (...parts) => parts.reduce((h, p) => h.update(p), createHash('sha256')).digest()
const b64 = (data) => Buffer.from(data).toString('base64url')

// Key n has SHA-256("pawl" and the byte n) as its seed.
const privateKey = (n) =>
  createPrivateKey({
    key: Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), sha256('pawl', Buffer.from([n]))]),
    format: 'der',
    type: 'pkcs8',
  })
const publicX = (n) => createPublicKey(privateKey(n)).export({ format: 'jwk' }).x
const jwk = (n) => ({ kty: 'OKP', crv: 'Ed25519', x: publicX(n), kid: `key-${n}`, alg: 'EdDSA', use: 'sig' })
const thumbprint = (n) => b64(sha256(`{"crv":"Ed25519","kty":"OKP","x":"${publicX(n)}"}`))

const compact = (n, header, payload) => {
  const input = `${b64(header)}.${b64(payload)}`
  return `${input}.${b64(sign(null, Buffer.from(input), privateKey(n)))}`
}

// RFC 8785 for what stands here: JavaScript writes numbers and strings as the RFC wants them.
const canonical = (v) => {
  if (Array.isArray(v)) return `[${v.map(canonical).join(',')}]`
  if (v === null || typeof v !== 'object') return JSON.stringify(v)
  return `{${Object.keys(v).sort().map((k) => `${JSON.stringify(k)}:${canonical(v[k])}`).join(',')}}`
}

const realm = 'store-eu'
const iss = 'https://issuer.example'
const iat = Date.UTC(2026, 2, 1, 12) / 1000
const header = { alg: 'EdDSA', kid: 'key-1', typ: 'pawl-grant+jwt' }
const details = { to: 'Café "Zürich"', amount: '250.00', lines: [{ n: 1.5, b: true }, null] }
const claims = {
  iss, sub: 'alice', aud: realm, jti: 'grant-1', iat, exp: iat + 3600,
  authorization_details: [{ type: 'credit.create', details }],
}

const without = (o, ...names) => Object.fromEntries(Object.entries(o).filter(([k]) => !names.includes(k)))
const json = JSON.stringify
const token = (change = {}, head = {}, n = 1) => compact(n, json({ ...header, ...head }), json({ ...claims, ...change }))

const grant = (c, namespace = '') => {
  const [{ type: kind, details }] = c.authorization_details
  const fingerprint = sha256(`{"details":${canonical(details)},"kind":"${kind}"}`).toString('hex')
  return {
    issuer: c.iss, namespace, grant_id: c.jti, realm, subject: c.sub, tenant: c.tenant ?? '', authority: c.authority ?? '',
    kind, details: canonical(details), fingerprint, issued_at: c.iat, not_before: c.nbf ?? 0, expires_at: c.exp,
    leeway_policy: c.leeway_policy ?? '',
  }
}

const full = {
  ...claims, tenant: 'acme', authority: 'https://login.example', nbf: iat + 1, leeway_policy: '2026', unknown: { claim: [1] },
}
const scoped = { ...claims, iss: 'tenant-issuer', tenant: 'acme' }
const reordered = Object.fromEntries(Object.entries(claims).reverse())
const bound = { ...claims, cnf: { jkt: thumbprint(7) } }

const accepted = [
  ['the least', token(), grant(claims)],
  ['everything', token(full), grant(full)],
  ['namespace of a tenant-scoped issuer', token(scoped, { kid: 'key-3' }, 3), grant(scoped, 'acme')],
  ['no kid where the issuer has one key', compact(3, json(without(header, 'kid')), json(scoped)), grant(scoped, 'acme')],
  ['another order and white space', compact(1, json(Object.fromEntries(Object.entries(header).reverse())), json(reordered, null, 2)), grant(claims)],
  ['escapes', compact(1, json(header), json(claims).replace('"jti"', '"\\u006ati"').replace('é', '\\u00e9')), grant(claims)],
  ['details with other spellings', compact(1, json(header), json(claims).replace('1.5', '15e-1')), grant(claims)],
  ['audience as a list of one', token({ aud: [realm] }), grant(claims)],
  ['expired long ago: the store decides', token({ iat: iat - 1e8, exp: iat - 1e8 + 60 }), grant({ ...claims, iat: iat - 1e8, exp: iat - 1e8 + 60 })],
]

const none = `${b64(json({ ...header, alg: 'none' }))}.${b64(json(claims))}.`
const hs256 = (() => {
  const input = `${b64(json({ ...header, alg: 'HS256' }))}.${b64(json(claims))}`
  return `${input}.${b64(createHmac('sha256', Buffer.from(publicX(1), 'base64url')).update(input).digest())}`
})()
const [h, p, s] = token().split('.')
const one = claims.authorization_details[0]

const refused = [
  ['alg none', none, 'refused', 'signature'],
  ['HS256 with the public key as secret', hs256, 'refused', 'signature'],
  ['another algorithm in the header', token({}, { alg: 'ES256' }), 'refused', 'signature'],
  ['unknown kid', token({}, { kid: 'key-9' }), 'refused', 'signature'],
  ['no kid where the issuer has two keys', compact(1, json(without(header, 'kid')), json(claims)), 'refused', 'signature'],
  ['crit', token({}, { crit: ['exp'] }), 'refused', 'signature'],
  ['b64', token({}, { b64: false }), 'refused', 'signature'],
  ['jwk in the header', token({}, { jwk: jwk(9) }, 9), 'refused', 'signature'],
  ['jku in the header', token({}, { jku: 'https://issuer.example/jwks' }), 'refused', 'signature'],
  ['typ JWT', token({}, { typ: 'JWT' }), 'refused', 'signature'],
  ['no typ', compact(1, json(without(header, 'typ')), json(claims)), 'refused', 'signature'],
  ['forged', compact(9, json(header), json(claims)), 'refused', 'signature'],
  ['another payload under the signature', `${h}.${b64(json({ ...claims, jti: 'grant-2' }))}.${s}`, 'refused', 'signature'],
  ['unknown issuer', token({ iss: 'https://other.example' }), 'refused', 'issuer_unknown'],
  ['another realm', token({ aud: 'store-us' }), 'refused', 'wrong_realm'],
  ['two audiences', token({ aud: [realm, 'store-us'] }), 'refused', 'wrong_realm'],
  ['bound, without a proof', token(bound), 'refused', 'possession'],
  ['bound in a way that is not known', token({ cnf: { kid: 'x' } }), 'refused', 'possession'],
  ...['iss', 'sub', 'aud', 'jti', 'iat', 'exp', 'authorization_details'].map((name) => [
    `no ${name}`, compact(1, json(header), json(without(claims, name))), 'malformed', 'missing',
  ]),
  ['empty jti', token({ jti: '' }), 'malformed', 'missing'],
  ['empty tenant', token({ tenant: '' }), 'malformed', 'missing'],
  ['control character', token({ sub: 'a\u0007' }), 'malformed', 'malformed'],
  ['subject of 256 bytes', token({ sub: 'é'.repeat(128) }), 'malformed', 'too_large'],
  ['exp 2^50', token({ exp: 2 ** 50 }), 'malformed', 'malformed'],
  ['exp 2^62', compact(1, json(header), json(claims).replace(`"exp":${iat + 3600}`, '"exp":4611686018427387904')), 'malformed', 'malformed'],
  ['exp "infinity"', token({ exp: 'infinity' }), 'malformed', 'malformed'],
  ['exp in milliseconds', token({ exp: (iat + 3600) * 1000 }), 'malformed', 'malformed'],
  ['exp with a fraction', token({ exp: iat + 3600.5 }), 'malformed', 'malformed'],
  ['exp a string', token({ exp: String(iat + 3600) }), 'malformed', 'malformed'],
  ['exp before iat', token({ exp: iat - 1 }), 'malformed', 'malformed'],
  ['lifetime over a day', token({ exp: iat + 86401 }), 'malformed', 'lifetime'],
  ['a claim twice', compact(1, json(header), json(claims).replace('"sub"', '"jti":"grant-2","sub"')), 'malformed', 'malformed'],
  ['a number that is not exact', compact(1, json(header), json(claims).replace('1.5', '9007199254740993')), 'malformed', 'malformed'],
  ['two intents', token({ authorization_details: [one, one] }), 'malformed', 'malformed'],
  ['a member more in the intent', token({ authorization_details: [{ ...one, actions: ['x'] }] }), 'malformed', 'malformed'],
  ['details a string', token({ authorization_details: [{ ...one, details: '{}' }] }), 'malformed', 'details_not_canonical'],
  ['kind in capitals', token({ authorization_details: [{ ...one, type: 'Credit' }] }), 'malformed', 'malformed'],
  ['padding', `${h}.${p}.${s}==`, 'malformed', 'malformed'],
  ['a line end', `${h}.${p}.${s}\n`, 'malformed', 'malformed'],
  ['two parts', `${h}.${p}`, 'malformed', 'malformed'],
  ['nothing', '', 'malformed', 'missing'],
]

const boundToken = token(bound)
const request = { method: 'POST', url: 'https://pay.example/v1/admissions' }
const proof = (change = {}, n = 7) =>
  compact(
    n,
    json({ typ: 'dpop+jwt', alg: 'EdDSA', jwk: { kty: 'OKP', crv: 'Ed25519', x: publicX(n) } }),
    json({ jti: 'proof-1', htm: request.method, htu: request.url, iat, ath: b64(sha256(boundToken)), ...change }),
  )

process.stdout.write(
  json(
    {
      about:
        'Tokens and what a verifier of this realm must make of them. Made by test/jose/vectors.mjs, apart from the Go code. ' +
        'The keys are public: for tests only. Times are in seconds; the maximum lifetime is one day.',
      realm,
      issuers: [
        { name: iss, tenant_scoped: false, jwks: { keys: [jwk(1), jwk(2)] } },
        { name: 'tenant-issuer', tenant_scoped: true, jwks: { keys: [jwk(3)] } },
      ],
      accepted: accepted.map(([name, token, grant]) => ({ name, token, grant })),
      refused: refused.map(([name, token, error, reason]) => ({ name, token, error, reason })),
      proofs: {
        token: boundToken,
        ...request,
        now: iat + 30,
        holds: [{ name: 'as it should be', proof: proof() }],
        fails: [
          { name: 'by another key', proof: proof({}, 8) },
          { name: 'for another token', proof: proof({ ath: b64(sha256(token())) }) },
          { name: 'for another method', proof: proof({ htm: 'GET' }) },
          { name: 'for another address', proof: proof({ htu: 'https://pay.example/v1/grants' }) },
          { name: 'too old', proof: proof({ iat: iat - 31 }) },
          { name: 'from the future', proof: proof({ iat: iat + 36 }) },
        ],
      },
    },
    null,
    2,
  ) + '\n',
)
