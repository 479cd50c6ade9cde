import { constants } from 'node:crypto';
import { createSecureContext, type SecureContextOptions } from 'node:tls';

/** In order of preference. OpenSSL 3.0 does not know the first. */
const CURVES = ['X25519MLKEM768', 'X25519', 'P-256', 'P-384', 'P-521'];

/**
 * The curves that this OpenSSL knows, in the format of `ecdhCurve`. One unknown name makes OpenSSL refuse the whole
 * list.
 */
export function knownCurves(names: readonly string[]): string {
  return names.filter(isKnown).join(':');
}

function isKnown(ecdhCurve: string): boolean {
  try {
    // An empty `ca` saves parsing the default certificates, which takes 0.1 s.
    createSecureContext({ ecdhCurve, ca: [] });
    return true;
  } catch {
    return false;
  }
}

/**
 * TLS 1.3, or TLS 1.2 with ECDHE. A server chooses what a client computes before it has proven who it is, so nothing
 * costly is offered: no renegotiation, no rare curves or signatures, and no finite-field Diffie-Hellman. A TLS 1.2
 * server may choose a group of 10,000 bits, which takes the client 0.9 s per connection.
 */
export const OUTGOING_TLS = {
  minVersion: 'TLSv1.2',
  ciphers: [
    'TLS_AES_128_GCM_SHA256',
    'TLS_AES_256_GCM_SHA384',
    'TLS_CHACHA20_POLY1305_SHA256',
    'ECDHE+AESGCM',
    'ECDHE+CHACHA20',
    'ECDHE+AES',
    '!aNULL',
  ].join(':'),
  ecdhCurve: knownCurves(CURVES),
  sigalgs: [
    'ecdsa_secp256r1_sha256',
    'ecdsa_secp384r1_sha384',
    'ecdsa_secp521r1_sha512',
    'ed25519',
    'rsa_pss_rsae_sha256',
    'rsa_pss_rsae_sha384',
    'rsa_pss_rsae_sha512',
    'rsa_pss_pss_sha256',
    'rsa_pss_pss_sha384',
    'rsa_pss_pss_sha512',
    'rsa_pkcs1_sha256',
    'rsa_pkcs1_sha384',
    'rsa_pkcs1_sha512',
  ].join(':'),
  secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
} as const satisfies SecureContextOptions;
