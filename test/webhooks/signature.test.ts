import { execFileSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { signWebhook, verifyWebhookSignature } from '../../src/webhooks/index.js';
import { newSigningSecret } from '../../src/webhooks/signature.js';

const secret = `whsec_${'0123456789abcdefghijABCDEFGHIJ0123456789'}`;
const body = '{"id":"evt_1", "type":"esim.activated","data":{"n":9007199254740993,"name":"Zoë 🦊"}}\n';
const nowSeconds = 1_795_000_000;
const header = signWebhook({ timestampSeconds: nowSeconds, body, secrets: [secret] });
const valid = { header, body, secret, nowSeconds };

/** Python's own HMAC, so that our code does not check itself. */
function pythonHmac(key: string, text: string): string {
  const script =
    'import hmac,hashlib,sys;print(hmac.new(sys.argv[1].encode(),sys.stdin.buffer.read(),hashlib.sha256).hexdigest())';
  return execFileSync('python3', ['-c', script, key], { input: text }).toString().trim();
}

describe('signWebhook', () => {
  it('signs "<t>.<raw body>" with the secret as shown, like another implementation', () => {
    expect(header).toBe(`t=${nowSeconds},v1=${pythonHmac(secret, `${nowSeconds}.${body}`)}`);
  });

  it('signs with the new and the old secret during a rotation, new first', () => {
    const both = signWebhook({ timestampSeconds: nowSeconds, body, secrets: [secret, 'whsec_old'] });
    expect(both).toBe(`${header},v1=${pythonHmac('whsec_old', `${nowSeconds}.${body}`)}`);
    expect(verifyWebhookSignature({ ...valid, header: both })).toBe(true);
    expect(verifyWebhookSignature({ ...valid, header: both, secret: 'whsec_old' })).toBe(true);
    expect(verifyWebhookSignature({ ...valid, header: both, secret: 'whsec_other' })).toBe(false);
  });

  it('creates the same signature for text and bytes', () => {
    expect(signWebhook({ timestampSeconds: nowSeconds, body: Buffer.from(body), secrets: [secret] })).toBe(
      header,
    );
  });
});

describe('verifyWebhookSignature', () => {
  it('accepts the exact bytes, as text and as a buffer', () => {
    expect(verifyWebhookSignature(valid)).toBe(true);
    expect(verifyWebhookSignature({ ...valid, body: Buffer.from(body) })).toBe(true);
  });

  it.each([
    ['one byte of the body differs', { body: body.replace('1', '2') }],
    ['whitespace in the body differs', { body: body.trim() }],
    ['the secret lacks its prefix', { secret: secret.slice('whsec_'.length) }],
    ['t is altered', { header: header.replace(`t=${nowSeconds}`, `t=${nowSeconds + 1}`) }],
    ['t is missing', { header: header.replace(/^t=\d+,/, '') }],
    ['t is empty', { header: header.replace(/^t=\d+/, 't=') }],
    ['t is not a number', { header: header.replace(/^t=\d+/, 't=1e9') }],
    ['t appears twice', { header: `t=1,${header}` }],
    ['v1 is missing', { header: `t=${nowSeconds}` }],
    ['v1 is shorter', { header: header.slice(0, -1) }],
    ['v1 is longer', { header: `${header}0` }],
    ['v1 is empty', { header: `t=${nowSeconds},v1=` }],
    ['the scheme is unknown', { header: header.replace('v1=', 'v0=') }],
    ['the header is empty', { header: '' }],
    ['the header is garbage', { header: ',,==,v1,t' }],
    ['t is more than 300 s old', { nowSeconds: nowSeconds + 301 }],
    ['t is more than 300 s ahead', { nowSeconds: nowSeconds - 301 }],
    ['the receiver has no clock', { nowSeconds: Number.NaN }],
  ])('refuses when %s', (_why, change) => {
    expect(verifyWebhookSignature({ ...valid, ...change })).toBe(false);
  });

  it('accepts t up to 300 s off in either direction, and another tolerance on request', () => {
    expect(verifyWebhookSignature({ ...valid, nowSeconds: nowSeconds + 300 })).toBe(true);
    expect(verifyWebhookSignature({ ...valid, nowSeconds: nowSeconds - 300 })).toBe(true);
    expect(verifyWebhookSignature({ ...valid, nowSeconds: nowSeconds + 10, toleranceSeconds: 5 })).toBe(
      false,
    );
  });

  it('uses the current time by default', () => {
    const timestampSeconds = Math.floor(Date.now() / 1_000);
    const fresh = signWebhook({ timestampSeconds, body, secrets: [secret] });
    expect(verifyWebhookSignature({ header: fresh, body, secret })).toBe(true);
    expect(verifyWebhookSignature({ header, body, secret })).toBe(
      Math.abs(timestampSeconds - nowSeconds) <= 300,
    );
  });
});

describe('newSigningSecret', () => {
  it('creates distinct base62 secrets that use every letter', () => {
    const secrets = Array.from({ length: 500 }, () => newSigningSecret());
    expect(new Set(secrets).size).toBe(500);
    for (const text of secrets) expect(text).toMatch(/^whsec_[0-9A-Za-z]{40}$/);
    expect(new Set(secrets.flatMap((text) => [...text.slice(6)])).size).toBe(62);
  });
});
