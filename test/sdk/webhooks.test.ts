import { createHmac } from 'node:crypto';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { Headers as UndiciHeaders } from 'undici';
import { describe, expect, it } from 'vitest';
import { unwrapWebhook, type WebhookHeaders, WebhookVerificationError } from '../../sdk/src/index.js';
import { newSigningSecret, signWebhook } from '../../src/webhooks/signature.js';
import { sharedVectors } from '../docs/signature-vectors.js';

const NOW = 1_795_080_600;
const secret = newSigningSecret();
const body =
  '{"id":"evt_1","type":"esim.activated","created_at":"2026-11-19T09:30:00.412Z","data":{"name":"Zoë"}}';
const own = (timestampSeconds = NOW, signed = body): Record<string, string> => ({
  'X-Service-Signature': signWebhook({ timestampSeconds, body: signed, secrets: [secret] }),
});
/** Headers by the public specification, implemented separately from the service and the SDK. */
const standard = (timestamp = NOW, id = 'evt_1'): Record<string, string> => {
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
  const signature = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64');
  return {
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': `v1,AAAA v1,${signature}`,
  };
};

function sharedCopyOf(bytes: Uint8Array): SharedArrayBuffer {
  const shared = new SharedArrayBuffer(bytes.length);
  new Uint8Array(shared).set(bytes);
  return shared;
}

async function reasonOf(
  raw: unknown,
  headers: WebhookHeaders,
  secrets: string | string[] = secret,
): Promise<string> {
  try {
    const event = await unwrapWebhook(raw as string, headers, secrets, { nowSeconds: NOW });
    return `ok ${event.type}`;
  } catch (error) {
    return (error as WebhookVerificationError).reason;
  }
}

describe('unwrapWebhook', () => {
  it.each([
    ['text', body, own(), 'ok esim.activated'],
    ['bytes', Buffer.from(body), new Headers(own()), 'ok esim.activated'],
    ['the headers of Standard Webhooks', body, standard(), 'ok esim.activated'],
    ['300 s old', body, own(NOW - 300), 'ok esim.activated'],
    ['301 s old', body, own(NOW - 301), 'timestamp_too_old'],
    ['301 s ahead', body, standard(NOW + 301), 'timestamp_in_future'],
    ['another body', body.replace('Zoë', 'Zoe'), own(), 'no_match'],
    ['another id', body, { ...standard(), 'webhook-id': 'evt_2' }, 'no_match'],
    ['no header', body, {}, 'no_signature'],
    ['half a header', body, { 'x-service-signature': 'v1=00' }, 'malformed_signature'],
    ['a parsed body', JSON.parse(body), own(), 'body_was_parsed'],
    ['a body that is not an event', '[]', own(NOW, '[]'), 'invalid_body'],
  ])('judges %s as %s', async (_name, raw, headers, expected) => {
    expect(await reasonOf(raw, headers as WebhookHeaders)).toBe(expected);
  });

  it('accepts either of two secrets during a rotation', async () => {
    expect(await reasonOf(body, own(), [newSigningSecret(), secret])).toBe('ok esim.activated');
    expect(await reasonOf(body, standard(), [secret, newSigningSecret()])).toBe('ok esim.activated');
    expect(await reasonOf(body, own(), [secret, ''])).toBe('ok esim.activated');
    expect(await reasonOf(body, own(), newSigningSecret())).toBe('no_match');
  });

  it.each([
    ['an empty text', ''],
    ['an empty list', []],
    ['two empty secrets', ['', '']],
    ['a quoted empty secret', '""'],
    ['an unset variable', undefined],
  ])('reports an empty secret for %s, instead of blaming the signature', async (_name, secrets) => {
    const unwrapped = unwrapWebhook(body, own(), secrets as string | string[], { nowSeconds: NOW });
    await expect(unwrapped).rejects.toThrow(
      new TypeError(
        'The signing secret is empty. Pass the secret of the endpoint, and check that ESIM_WEBHOOK_SECRET is set.',
      ),
    );
    // This also applies to a request without any signature.
    await expect(unwrapWebhook('', {}, secrets as string)).rejects.toThrow(TypeError);
  });

  it('judges the vectors of the documentation like the service', async () => {
    for (const { name, header, body: base64, secret: used, now, expected } of sharedVectors()) {
      const headers = header === null ? {} : { 'x-service-signature': header };
      const options = now === null ? {} : { nowSeconds: now };
      const verdict = await unwrapWebhook(Buffer.from(base64, 'base64'), headers, used, options).then(
        () => true,
        // Some vectors are not events, but have a valid signature.
        (error: unknown) => (error as WebhookVerificationError).reason === 'invalid_body',
      );
      expect(verdict, name).toBe(expected);
    }
  });
});

/** Forms in which runtimes, frameworks and gateways pass headers to a program. */
const FORMS: Readonly<Record<string, (pairs: readonly (readonly [string, string])[]) => WebhookHeaders>> = {
  'Headers of fetch': (pairs) => new Headers(pairs.map(([name, value]) => [name, value])),
  'Headers of undici': (pairs) => new UndiciHeaders(pairs.map(([name, value]) => [name, value])),
  'a record': (pairs) => Object.fromEntries(pairs),
  'a record without a prototype': (pairs) =>
    Object.assign(Object.create(null) as object, Object.fromEntries(pairs)) as Record<string, string>,
  "Node's request.headers": (pairs) => ({
    host: undefined,
    ...Object.fromEntries(pairs.map(([name, value]) => [name.toLowerCase(), value])),
  }),
  "API Gateway's multiValueHeaders": (pairs) =>
    Object.fromEntries(pairs.map(([name, value]) => [name, [value]])),
  'the record of lists of Lambda@Edge': (pairs) =>
    Object.fromEntries(pairs.map(([key, value]) => [key.toLowerCase(), [{ key, value }]])),
  'the record of CloudFront Functions': (pairs) =>
    Object.fromEntries(pairs.map(([key, value]) => [key.toLowerCase(), { value }])),
  'an array of pairs': (pairs) => [...pairs],
  "Node's rawHeaders": (pairs) => pairs.flat(),
  'rawHeaders of undici, as bytes': (pairs) =>
    pairs.flat().map((each) => Buffer.from(each)) as unknown as string[],
  'a Map': (pairs) => new Map(pairs),
  'pairs that are made one by one': (pairs) => pairs[Symbol.iterator](),
  'an object with get alone': (pairs) => ({
    get: (name: string) => pairs.find(([key]) => key.toLowerCase() === name.toLowerCase())?.[1] ?? null,
  }),
  'an object whose get answers undefined': (pairs) => ({
    get: (name: string) => pairs.find(([key]) => key.toLowerCase() === name.toLowerCase())?.[1],
  }),
};

const OTHERS = [
  ['Content-Type', 'application/json'],
  ['X-Forwarded-For', '203.0.113.7'],
  ['get', 'a header of that name'],
] as const;

describe.each(Object.entries(FORMS))('unwrapWebhook with %s', (_name, form) => {
  it.each([
    ['X-Service-Signature', own],
    ['Standard Webhooks', standard],
  ])('finds the headers of %s in any case and order, and refuses another body', async (_scheme, headers) => {
    const signed = Object.entries(headers());
    const spellings = fc.tuple(
      fc.shuffledSubarray([...signed, ...OTHERS], { minLength: signed.length + OTHERS.length }),
      fc.constantFrom(
        (name: string) => name,
        (name: string) => name.toLowerCase(),
        (name: string) => name.toUpperCase(),
      ),
    );
    await fc.assert(
      fc.asyncProperty(spellings, async ([pairs, spelled]) => {
        const given = (): WebhookHeaders => form(pairs.map(([name, value]) => [spelled(name), value]));
        expect(await reasonOf(body, given())).toBe('ok esim.activated');
        expect(await reasonOf(`${body} `, given())).toBe('no_match');
      }),
      { numRuns: 30 },
    );
  });

  it('reports a missing signature', async () => {
    expect(await reasonOf(body, form(OTHERS))).toBe('no_signature');
  });
});

describe('unwrapWebhook', () => {
  it.each([
    ['a line break at its end', `${secret}\n`],
    ['a Windows line break', `${secret}\r\n`],
    ['white space around it', `  ${secret}\t\n\n`],
    ['a byte order mark', `\uFEFF${secret}\n`],
    ['quotes', `"${secret}"\n`],
    ['single quotes and white space', ` '${secret} ' `],
  ])('accepts a secret from a file with %s', async (_name, read) => {
    expect(await reasonOf(body, own(), read)).toBe('ok esim.activated');
    expect(await reasonOf(body, standard(), [newSigningSecret(), read])).toBe('ok esim.activated');
  });

  const framed = Buffer.from(`..${body}..`);
  const inFrame = new Uint8Array(framed).subarray(2, -2);
  it.each([
    ['a DataView', new DataView(inFrame.buffer, inFrame.byteOffset, inFrame.byteLength)],
    ['a part of a larger buffer', inFrame],
    ['a Uint8ClampedArray', new Uint8ClampedArray(inFrame)],
    ['an ArrayBuffer', new Uint8Array(inFrame).buffer],
    [
      'an ArrayBuffer from another realm',
      runInNewContext('Uint8Array.from(bytes).buffer', { bytes: [...inFrame] }),
    ],
    ['shared memory', sharedCopyOf(inFrame)],
    ['a view of shared memory', new Uint8Array(sharedCopyOf(inFrame))],
  ])('accepts the bytes of %s', async (_name, raw) => {
    expect(await reasonOf(raw, own())).toBe('ok esim.activated');
  });

  it('reads a Uint16Array as its bytes', async () => {
    const even = `${body}${' '.repeat(Buffer.byteLength(body) % 2)}`;
    const words = new Uint16Array(new Uint8Array(Buffer.from(even)).buffer);
    expect(await reasonOf(words, own(NOW, even))).toBe('ok esim.activated');
  });

  it.each([',', ', '])('accepts headers that a proxy has doubled and joined with %j', async (separator) => {
    const doubled = (headers: Record<string, string>): Record<string, string> =>
      Object.fromEntries(
        Object.entries(headers).map(([name, value]) => [name, `${value}${separator}${value}`]),
      );
    expect(await reasonOf(body, doubled(own()))).toBe('ok esim.activated');
    expect(await reasonOf(body, doubled(standard()))).toBe('ok esim.activated');
    const [one = '', other = ''] = [own(), own(NOW - 1)].map((headers) => headers['X-Service-Signature']);
    const joined = { 'X-Service-Signature': `${one}${separator}${other}` };
    expect(await reasonOf(body, joined)).toBe('malformed_signature');
  });

  it('accepts a header under two spellings, but not with two different signatures', async () => {
    const { 'X-Service-Signature': signature = '' } = own();
    const twice = { 'X-Service-Signature': signature, 'x-service-signature': signature };
    expect(await reasonOf(body, twice)).toBe('ok esim.activated');
    const other = own(NOW - 1)['X-Service-Signature']!;
    expect(await reasonOf(body, { ...twice, 'x-service-signature': other })).toBe('malformed_signature');
  });

  it.each([
    ['undefined', undefined],
    ['null', null],
    ['text', 'x-service-signature'],
  ])('explains what to pass when the headers are %s', async (_name, headers) => {
    const unwrapped = unwrapWebhook(body, headers as unknown as WebhookHeaders, secret);
    await expect(unwrapped).rejects.toThrow(/^The headers are missing\. Pass the headers of the request/);
  });

  it.each([
    'no_signature',
    'malformed_signature',
    'no_match',
    'timestamp_too_old',
    'timestamp_in_future',
    'body_was_parsed',
    'invalid_body',
  ] as const)('explains the error and its fix for %s', (reason) => {
    expect(new WebhookVerificationError(reason).message).toMatch(/^[A-Z].*[.:] .*\.$/);
  });
});
