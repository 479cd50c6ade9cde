import { createSecureContext } from 'node:tls';
import { describe, expect, it } from 'vitest';
import { knownCurves, OUTGOING_TLS } from '../../../src/infra/network/outgoing-tls.js';

describe('the list of TLS curves of outgoing connections', () => {
  it('omits a curve that this OpenSSL does not know', () => {
    const names = ['NoSuchCurve', 'X25519', 'NoSuchEither', 'P-256'];
    expect(() => createSecureContext({ ecdhCurve: names.join(':') })).toThrow('Failed to set ECDH curve');
    expect(knownCurves(names)).toBe('X25519:P-256');
  });

  it('is accepted by this OpenSSL together with the other options', () => {
    expect(() => createSecureContext(OUTGOING_TLS)).not.toThrow();
    expect(OUTGOING_TLS.ecdhCurve).toContain('X25519:P-256:P-384:P-521');
  });
});
