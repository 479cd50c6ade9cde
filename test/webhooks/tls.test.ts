import type { ServerOptions } from 'node:https';
import type { Socket } from 'node:net';
import tls, { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { NodeChild } from '../harness/child-process.js';
import { TestAuthority } from './sending/certificates.js';
import { connections, http, https } from './sending/receivers.js';
import { afterThisTest, send, senderWith } from './sending/sender.js';

let authority: TestAuthority;
beforeAll(() => void (authority = new TestAuthority()));
afterAll(() => authority.remove());

/** From now on the authority is one of those that this process trusts. */
function trustAuthority(): void {
  const before = getCACertificates('default');
  setDefaultCACertificates([...before, authority.certificate]);
  afterThisTest(() => setDefaultCACertificates(before));
}

/** A TLS receiver that counts what is sent to it. */
async function receiver(options: ServerOptions) {
  let requests = 0;
  const port = await https(options, (_request, response) => {
    requests++;
    response.writeHead(200).end();
  });
  return { port, url: `https://localhost:${port}/hook`, requests: () => requests };
}

const OLD_CIPHERS = 'DEFAULT@SECLEVEL=0';

describe('a receiver that cannot prove who it is gets nothing', () => {
  it.each([
    ['an expired certificate', () => authority.issue({ days: -1 }), 'tls: CERT_HAS_EXPIRED'],
    ['a certificate of its own', () => authority.selfSigned(), 'tls: DEPTH_ZERO_SELF_SIGNED_CERT'],
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
  ])('%s', async (_what, identity, error) => {
    trustAuthority();
    const { url, requests } = await receiver(identity());
    const result = await send(senderWith(), url);
    expect(result).toMatchObject({ outcome: 'failed', statusCode: null, responseHeaders: null });
    expect(result.error).toMatch(error);
    expect(result.phases!.tlsMs).toBeGreaterThan(0);
    expect(requests()).toBe(0);
  });

  it('a certificate of an authority that nobody knows', async () => {
    const { url, requests } = await receiver(authority.issue());
    expect((await send(senderWith(), url)).error).toMatch(/^tls: UNABLE_TO_/);
    expect(requests()).toBe(0);
  });

  it('plain HTTP where TLS is due', async () => {
    const url = await http((_request, response) => void response.end());
    expect((await send(senderWith(), url.replace('http:', 'https:'))).error).toMatch(/^tls: /);
  });

  it('silence in the handshake, until the deadline', async () => {
    const port = await connections((socket: Socket) => void socket.resume());
    const result = await send(senderWith({ timeoutMs: 2_000 }), `https://localhost:${port}/`);
    expect(result).toMatchObject({ error: 'timeout', phases: { firstByteMs: null } });
    expect(result.phases!.tlsMs).toBeGreaterThan(500);
  });
});

describe('a receiver that proves who it is', () => {
  it('gets its webhook, over the same connection again', async () => {
    trustAuthority();
    const { url, requests } = await receiver(authority.issue());
    const sender = senderWith();
    expect(await send(sender, url)).toMatchObject({ outcome: 'delivered', reusedConnection: false });
    await new Promise((done) => setTimeout(done, 20));
    expect(await send(sender, url)).toMatchObject({ outcome: 'delivered', reusedConnection: true });
    expect(requests()).toBe(2);
  });

  it('gets its webhook once more when it closes a kept connection without an answer', async () => {
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

  it('vouches for no other name on the same address and port', async () => {
    trustAuthority();
    const { port, requests } = await receiver(authority.issue({ names: ['one.test'] }));
    const resolve = () => Promise.resolve([{ address: '127.0.0.1', family: 4 }]);
    const sender = senderWith({ resolve });
    const [one, two] = ['one', 'two'].map((name) => `https://${name}.test:${port}/hook`);
    expect(await send(sender, one!)).toMatchObject({ outcome: 'delivered' });
    await new Promise((done) => setTimeout(done, 20));
    // A connection and a TLS session to that address are at hand, and are not taken.
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
  /** Sends one webhook from a process of the built output; prints `error` or the status. */
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

  it('does not send webhooks through a proxy', async () => {
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

  it('cannot turn the check of certificates off', async () => {
    const { url, requests } = await receiver(authority.selfSigned());
    expect(await sendFromChild(url, { NODE_TLS_REJECT_UNAUTHORIZED: '0' })).toBe(
      'tls: DEPTH_ZERO_SELF_SIGNED_CERT',
    );
    expect(requests()).toBe(0);
  });
});
