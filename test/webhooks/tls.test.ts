import { createPrivateKey, generatePrimeSync, getDiffieHellman, randomBytes } from 'node:crypto';
import type { ServerOptions } from 'node:https';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import tls, { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { Allowances } from '../../src/infra/allowances.js';
import { MAX_TLS_OVERHEAD_BYTES, MeteredConnection } from '../../src/infra/network/metered-connection.js';
import { TLS_ALLOWANCE } from '../../src/webhooks/worker/webhook-agents.js';
import { NodeChild } from '../harness/child-process.js';
import { TestAuthority } from './sending/certificates.js';
import { connections, flood, http, https } from './sending/receivers.js';
import { afterThisTest, send, senderWith } from './sending/sender.js';

let authority: TestAuthority;
beforeAll(() => void (authority = new TestAuthority()));
afterAll(() => authority.remove());

/** Makes this process trust the authority from now on. */
function trustAuthority(): void {
  const before = getCACertificates('default');
  setDefaultCACertificates([...before, authority.certificate]);
  afterThisTest(() => setDefaultCACertificates(before));
}

/** A TLS receiver that counts its requests. */
async function receiver(options: ServerOptions) {
  let requests = 0;
  const port = await https(options, (_request, response) => {
    requests++;
    response.writeHead(200).end();
  });
  return { port, url: `https://localhost:${port}/hook`, requests: () => requests };
}

const OLD_CIPHERS = 'DEFAULT@SECLEVEL=0';

describe('a receiver that cannot prove its identity', () => {
  it.each([
    ['an expired certificate', () => authority.issue({ days: -1 }), 'tls: CERT_HAS_EXPIRED'],
    ['a self-signed certificate', () => authority.selfSigned(), 'tls: DEPTH_ZERO_SELF_SIGNED_CERT'],
    [
      'a certificate for another name',
      () => authority.issue({ names: ['other.example', '*.localhost'] }),
      'tls: ERR_TLS_CERT_ALTNAME_INVALID',
    ],
    [
      'TLS 1.0 only',
      () =>
        ({ ...authority.issue(), minVersion: 'TLSv1', maxVersion: 'TLSv1', ciphers: OLD_CIPHERS }) as const,
      /^tls: /,
    ],
    [
      'TLS 1.1 only',
      () =>
        ({
          ...authority.issue(),
          minVersion: 'TLSv1.1',
          maxVersion: 'TLSv1.1',
          ciphers: OLD_CIPHERS,
        }) as const,
      /^tls: /,
    ],
  ])('receives nothing with %s', async (_what, identity, error) => {
    trustAuthority();
    const { url, requests } = await receiver(identity());
    const result = await send(senderWith(), url);
    expect(result).toMatchObject({ outcome: 'failed', statusCode: null, responseHeaders: null });
    expect(result.error).toMatch(error);
    expect(result.phases!.tlsMs).toBeGreaterThan(0);
    expect(requests()).toBe(0);
  });

  it('receives nothing with a certificate of an unknown authority', async () => {
    const { url, requests } = await receiver(authority.issue());
    expect((await send(senderWith(), url)).error).toMatch(/^tls: UNABLE_TO_/);
    expect(requests()).toBe(0);
  });
});

describe('a receiver that proves its identity', () => {
  it('receives its webhooks over the same connection', async () => {
    trustAuthority();
    const { url, requests } = await receiver(authority.issue());
    const sender = senderWith();
    expect(await send(sender, url)).toMatchObject({ outcome: 'delivered', reusedConnection: false });
    await new Promise((done) => setTimeout(done, 20));
    expect(await send(sender, url)).toMatchObject({ outcome: 'delivered', reusedConnection: true });
    expect(requests()).toBe(2);
  });

  it('receives its webhook again when it closes a keep-alive connection without a response', async () => {
    trustAuthority();
    const used = new WeakSet();
    let requests = 0;
    const port = await https(authority.issue(), (request, response) => {
      requests++;
      if (used.has(request.socket)) request.socket.destroy();
      else response.end();
      used.add(request.socket);
    });
    const sender = senderWith();
    const url = `https://localhost:${port}/hook`;
    expect(await send(sender, url)).toMatchObject({ outcome: 'delivered' });
    await new Promise((done) => setTimeout(done, 20));
    expect(await send(sender, url)).toMatchObject({ outcome: 'delivered', reusedConnection: false });
    expect(requests).toBe(3);
  });

  it('is not trusted for another name on the same address and port', async () => {
    trustAuthority();
    const { port, requests } = await receiver(authority.issue({ names: ['one.test'] }));
    const resolve = () => Promise.resolve([{ address: '127.0.0.1', family: 4 }]);
    const sender = senderWith({ resolve });
    const [one, two] = ['one', 'two'].map((name) => `https://${name}.test:${port}/hook`);
    expect(await send(sender, one!)).toMatchObject({ outcome: 'delivered' });
    await new Promise((done) => setTimeout(done, 20));
    // A connection and a TLS session to that address exist, but must not be used.
    const refused = await send(sender, two!);
    expect(refused).toMatchObject({ reusedConnection: false, error: 'tls: ERR_TLS_CERT_ALTNAME_INVALID' });
    expect(await send(sender, one!)).toMatchObject({ outcome: 'delivered', reusedConnection: true });
    expect(requests()).toBe(2);
  });
});

it('fails at once and closes the connection when OpenSSL refuses the options', async () => {
  let closed = (): void => undefined;
  const isClosed = new Promise<void>((resolve) => (closed = resolve));
  const port = await connections((socket) => void socket.once('close', closed).resume());
  const refusal = Object.assign(new Error('Failed to set ECDH curve'), {
    code: 'ERR_CRYPTO_OPERATION_FAILED',
  });
  const connect = vi.spyOn(tls, 'connect').mockImplementation(() => {
    throw refusal;
  });
  afterThisTest(() => connect.mockRestore());
  const result = await send(senderWith(), `https://localhost:${port}/hook`);
  expect(result).toMatchObject({ outcome: 'failed', error: 'tls: ERR_CRYPTO_OPERATION_FAILED' });
  await isClosed;
});

describe('the environment of the process', () => {
  /** Sends one webhook from a process of the build, and prints `error` or the status. */
  const SEND = `
    const [url] = process.argv.slice(1);
    const { WebhookSender } = await import('./dist/src/webhooks/worker/webhook-sender.js');
    const { TargetPolicy } = await import('./dist/src/webhooks/target-policy.js');
    const { systemResolver } = await import('./dist/src/infra/network/resolve-addresses.js');
    const policy = new TargetPolicy({ webhooks: { allowPrivateTargets: true } });
    const sender = new WebhookSender({ timeoutMs: 5000, policy, resolve: systemResolver() });
    const result = await sender.send({ url, headers: {}, body: Buffer.from('{}'), owner: '' }, new AbortController());
    console.log(result.error ?? result.statusCode);
    sender.close();`;

  async function sendFromChild(url: string, env: Record<string, string>): Promise<string> {
    const child = NodeChild.launch({ args: ['--input-type=module', '--eval', SEND, url], env });
    afterThisTest(() => child.kill());
    expect([await child.exited(), child.stdout === '' ? child.stderr : '']).toEqual([0, '']);
    return child.stdout.trim();
  }

  it('does not make webhooks use a proxy', async () => {
    let proxied = 0;
    const proxyPort = await connections((socket) => {
      proxied++;
      socket.destroy();
    });
    const plain = await http((_request, response) => void response.end());
    const secure = await receiver(authority.issue());
    const proxy = `http://127.0.0.1:${proxyPort}`;
    const env = { NODE_USE_ENV_PROXY: '1', HTTP_PROXY: proxy, HTTPS_PROXY: proxy, ALL_PROXY: proxy };
    const lower = { http_proxy: proxy, https_proxy: proxy, all_proxy: proxy };
    expect(await sendFromChild(plain, { ...env, ...lower })).toBe('200');
    expect(await sendFromChild(secure.url, { ...env, ...lower })).toMatch(/^tls: UNABLE_TO_/);
    expect(proxied).toBe(0);
  });

  it('cannot disable the verification of certificates', async () => {
    const { url, requests } = await receiver(authority.selfSigned());
    expect(await sendFromChild(url, { NODE_TLS_REJECT_UNAUTHORIZED: '0' })).toBe(
      'tls: DEPTH_ZERO_SELF_SIGNED_CERT',
    );
    expect(requests()).toBe(0);
  });
});

describe('a receiver with usual TLS', () => {
  it.each([
    ['TLS 1.3', { minVersion: 'TLSv1.3' }],
    ['TLS 1.2 with AES-GCM', { maxVersion: 'TLSv1.2', ciphers: 'ECDHE-ECDSA-AES128-GCM-SHA256' }],
    ['TLS 1.2 with CBC', { maxVersion: 'TLSv1.2', ciphers: 'ECDHE-ECDSA-AES256-SHA384' }],
    ['TLS 1.2 with ChaCha20', { maxVersion: 'TLSv1.2', ciphers: 'ECDHE-ECDSA-CHACHA20-POLY1305' }],
    ['the curve P-256 alone', { ecdhCurve: 'P-256' }],
    ['the curve P-384 alone', { ecdhCurve: 'P-384' }],
    ['a request for a client certificate', { requestCert: true, rejectUnauthorized: false }],
  ] as const)('receives its webhook over %s', async (_what, options) => {
    trustAuthority();
    const { url } = await receiver({ ...authority.issue(), ...options });
    expect(await send(senderWith(), url)).toMatchObject({ outcome: 'delivered', error: null });
  });

  it('receives its webhook with an RSA certificate, in TLS 1.2 and 1.3', async () => {
    trustAuthority();
    for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
      const { url } = await receiver({ ...authority.issue({ key: 'rsa' }), maxVersion: version });
      expect(await send(senderWith(), url)).toMatchObject({ outcome: 'delivered' });
    }
  });
});

describe('a receiver that has not proven its identity', () => {
  it.each([
    [
      'Diffie-Hellman over a group of its choice',
      { maxVersion: 'TLSv1.2', ciphers: 'kDHE', dhparam: 'auto' },
    ],
    ['key exchange without forward secrecy', { maxVersion: 'TLSv1.2', ciphers: 'kRSA' }],
    ['a rare curve', { ecdhCurve: 'brainpoolP512r1', maxVersion: 'TLSv1.2' }],
  ] as const)('is not offered %s', async (_what, options) => {
    trustAuthority();
    const { url, requests } = await receiver({ ...authority.issue({ key: 'rsa' }), ...options });
    const result = await send(senderWith(), url);
    // The receiver reports that nothing acceptable was offered.
    expect(result).toMatchObject({ outcome: 'failed', statusCode: null, error: 'tls: EPROTO' });
    expect(requests()).toBe(0);
  });

  it('costs less than 20 ms of CPU when it demands a large group', async () => {
    const dhparam = parametersOf(getDiffieHellman('modp18').getPrime());
    const identity = authority.issue({ key: 'rsa' });
    const { url } = await receiver({ ...identity, maxVersion: 'TLSv1.2', ciphers: 'kDHE', dhparam });
    const sender = senderWith();
    await send(sender, url);
    const before = process.threadCpuUsage();
    for (let i = 0; i < 10; i++) expect(await send(sender, url)).toMatchObject({ error: 'tls: EPROTO' });
    const { user, system } = process.threadCpuUsage(before);
    expect((user + system) / 1_000 / 10).toBeLessThan(20);
  });

  it('may send at most 32 KB of certificates', async () => {
    trustAuthority();
    const { key, cert } = authority.issue();
    const copies = Math.ceil((2 * MAX_TLS_OVERHEAD_BYTES) / cert.length) + 1;
    const { url, requests } = await receiver({ key, cert: cert + authority.certificate.repeat(copies) });
    expect(await send(senderWith(), url)).toMatchObject({ outcome: 'failed', error: 'tls: TLS_FLOOD' });
    expect(requests()).toBe(0);
  });

  it('may send at most 32 KB of authority names', async () => {
    trustAuthority();
    const ca = authority.named(600);
    const { url, requests } = await receiver({ ...authority.issue(), requestCert: true, ca });
    expect(await send(senderWith(), url)).toMatchObject({ outcome: 'failed', error: 'tls: TLS_FLOOD' });
    expect(requests()).toBe(0);
  });

  it("uses up only its own partner's CPU allowance", { timeout: 120_000 }, async () => {
    const costly = await receiver(authority.costlyChain(costlyKey(), 10));
    trustAuthority();
    const healthy = await receiver(authority.issue());
    // Nothing is refilled during the test, however long it takes.
    const sender = senderWith({ tlsCpu: new Allowances(TLS_ALLOWANCE, () => 0) });
    const errors: (string | null)[] = [];
    while (errors.length < 30 && errors.at(-1) !== 'tls: TLS_TOO_COSTLY')
      errors.push((await send(sender, costly.url, undefined, 'ptn_hostile:sandbox')).error);
    expect(errors[0]).toBe('tls: INVALID_PURPOSE');
    expect(errors.at(-1)).toBe('tls: TLS_TOO_COSTLY');
    expect(await send(sender, healthy.url, undefined, 'ptn_other:sandbox')).toMatchObject({
      outcome: 'delivered',
    });
    // Existing connections continue.
    expect(await send(sender, healthy.url, undefined, 'ptn_hostile:sandbox')).toMatchObject({
      outcome: 'delivered',
      reusedConnection: true,
    });
  });
});

describe('a metered connection', () => {
  it('closes when TLS yields no data from its input', async () => {
    const port = await connections((socket: Socket) => void flood(socket, Buffer.alloc(1_000)));
    const metered = new MeteredConnection(connect(port, '127.0.0.1'));
    let fed = 0;
    let charged = 0;
    metered.measure({ dataBytes: () => 0, assertMayGoOn: () => undefined, spent: () => charged++ });
    metered.on('data', (bytes: Buffer) => (fed += bytes.length));
    const error = await new Promise<Error>((resolve) => metered.once('error', resolve));
    expect(error).toMatchObject({ code: 'TLS_FLOOD' });
    expect(fed).toBeLessThanOrEqual(MAX_TLS_OVERHEAD_BYTES + 8 * 1_024);
    expect(charged).toBeGreaterThanOrEqual(4);
  });

  it('stays open while TLS yields data from its input', async () => {
    const port = await connections((socket: Socket) => void flood(socket, Buffer.alloc(1_000)));
    const metered = new MeteredConnection(connect(port, '127.0.0.1'));
    afterThisTest(() => metered.destroy());
    let fed = 0;
    metered.measure({ dataBytes: () => fed, assertMayGoOn: () => undefined, spent: () => undefined });
    metered.on('data', (bytes: Buffer) => (fed += bytes.length));
    while (fed < 4 * MAX_TLS_OVERHEAD_BYTES) await sleep(10);
    expect(metered.destroyed).toBe(false);
  });

  it('reads no more than TLS consumes', async () => {
    let written = { bytes: 0 };
    const port = await connections(
      (socket: Socket) => void (written = flood(socket, Buffer.alloc(64 * 1_024))),
    );
    const metered = new MeteredConnection(connect(port, '127.0.0.1'));
    afterThisTest(() => metered.destroy());
    await sleep(300);
    expect(metered.readableLength).toBeLessThanOrEqual(128 * 1_024);
    expect(written.bytes).toBeLessThan(20_000_000);
  });
});

/** A Diffie-Hellman group in PEM. */
function parametersOf(prime: Buffer): string {
  const integer = (bytes: Buffer): Buffer => der(0x02, Buffer.concat([Buffer.from([0]), bytes]));
  const body = der(0x30, Buffer.concat([integer(prime), integer(Buffer.from([2]))])).toString('base64');
  return `-----BEGIN DH PARAMETERS-----\n${body.replaceAll(/.{64}/g, '$&\n')}\n-----END DH PARAMETERS-----\n`;
}

function der(tag: number, content: Buffer): Buffer {
  const long = Buffer.from([tag, 0x82, content.length >> 8, content.length & 0xff]);
  return Buffer.concat([content.length < 128 ? Buffer.from([tag, content.length]) : long, content]);
}

/**
 * An RSA key whose public exponent is as long as its modulus, so verifying a signature costs as much as creating one.
 */
function costlyKey(): string {
  const [p, q] = [generatePrimeSync(1_536, { bigint: true }), generatePrimeSync(1_536, { bigint: true })];
  const phi = (p - 1n) * (q - 1n);
  let e = 0n;
  let d: bigint | null = null;
  while (d === null) {
    e = BigInt(`0x${randomBytes(383).toString('hex')}`) | 1n | (1n << 3_060n);
    d = inverse(e, phi);
  }
  const text = (n: bigint): string => {
    const hex = n.toString(16);
    return Buffer.from(hex.padStart(hex.length + (hex.length % 2), '0'), 'hex').toString('base64url');
  };
  const parts = { n: p * q, e, d, p, q, dp: d % (p - 1n), dq: d % (q - 1n), qi: inverse(q, p)! };
  const jwk = Object.fromEntries(Object.entries(parts).map(([name, n]) => [name, text(n)]));
  return createPrivateKey({ key: { kty: 'RSA', ...jwk }, format: 'jwk' }).export({
    type: 'pkcs8',
    format: 'pem',
  }) as string;
}

/** The inverse of `a` modulo `m`, or null when there is none. */
function inverse(a: bigint, m: bigint): bigint | null {
  let [r0, r1, s0, s1] = [m, a % m, 0n, 1n];
  while (r1 > 0n) {
    const quotient = r0 / r1;
    [r0, r1, s0, s1] = [r1, r0 - quotient * r1, s1, s0 - quotient * s1];
  }
  return r0 === 1n ? ((s0 % m) + m) % m : null;
}
