import { describe, expect, it } from 'vitest';
import { nameServerResolver } from '../../src/infra/network/resolve-addresses.js';
import { startCanary, watchDials } from './sending/canary.js';
import { NameServer, type Zone } from './sending/name-server.js';
import { http } from './sending/receivers.js';
import { send, senderWith } from './sending/sender.js';
import { HOSTILE_NAMES, HOSTILE_URLS, UNASSIGNED } from './ssrf-targets.js';

const names = Object.keys(HOSTILE_NAMES);

/** An attempt to connect to the unassigned address ends after this time. */
const REBIND_TIMEOUT_MS = 1_500;

/** The sender as in production, with our own name server and a watch on everything that it could connect to. */
async function production(zone: Zone, settings: { timeoutMs?: number } = {}) {
  const [canary, nameServer] = [await startCanary(), await NameServer.start(zone)];
  const resolve = nameServerResolver(() => [nameServer.address]);
  const sender = senderWith({ allowPrivateTargets: false, resolve, ...settings });
  return { sender, canary, nameServer, resolve, dials: watchDials() };
}

describe('a URL that is not a public target', () => {
  it('is refused at every attempt, without a DNS query or a connection', async () => {
    const { sender, canary, nameServer, dials } = await production({});
    for (const url of HOSTILE_URLS) {
      const result = await send(sender, url.replaceAll('PORT', String(canary.port)));
      expect([url, result.error, result.statusCode]).toEqual([url, 'target_refused', null]);
      expect(result.phases).toMatchObject({ dnsMs: null, connectMs: null, tlsMs: null, firstByteMs: null });
    }
    expect([nameServer.questions, dials, canary.count()]).toEqual([[], [], 0]);
  });
});

describe('a name that resolves to a private address', () => {
  it('is refused before connecting', async () => {
    const { sender, canary, nameServer, dials } = await production(HOSTILE_NAMES);
    for (const name of names) {
      const result = await send(sender, `https://${name}:${canary.port}/hook`);
      expect([name, result.error, result.statusCode]).toEqual([name, 'target_refused', null]);
      expect(JSON.stringify(result)).not.toMatch(/127\.0\.0\.1|::1|169\.254/);
      expect(nameServer.questions).toContain(`A ${name}`);
    }
    expect([dials, canary.count()]).toEqual([[], 0]);
  });

  it('reaches the canary when the guard is off, which proves that the previous test can fail', async () => {
    const { canary, resolve, dials } = await production(HOSTILE_NAMES);
    const sender = senderWith({ resolve });
    for (const name of ['loopback.test', 'loopback6.test', 'private-first.test']) {
      await send(sender, `https://${name}:${canary.port}/hook`);
    }
    expect(canary.count()).toBe(3);
    expect(dials).toEqual(['127.0.0.1', '::1', '127.0.0.1'].map((address) => `${address} ${canary.port}`));
  });

  it('is resolved once: the checked address is dialed, and a later attempt is checked again', async () => {
    const rebinding = (asked: number) => (asked === 0 ? { aaaa: [UNASSIGNED] } : { aaaa: ['::1'] });
    const { sender, canary, nameServer, dials } = await production(
      { 'rebind.test': rebinding },
      { timeoutMs: REBIND_TIMEOUT_MS },
    );
    const url = `https://rebind.test:${canary.port}/hook`;
    expect((await send(sender, url)).error).toMatch(/^(connect: |timeout$)/);
    expect(nameServer.questions.toSorted()).toEqual(['A rebind.test', 'AAAA rebind.test']);
    expect(dials).toEqual([`${UNASSIGNED} ${canary.port}`]);
    expect((await send(sender, url)).error).toBe('target_refused');
    expect([dials.length, canary.count()]).toEqual([1, 0]);
  });

  it('fails with dns, without a connection, for a dangling alias and for an unknown name', async () => {
    const { sender, dials } = await production({ 'dangling.test': { cname: 'gone.test' } });
    expect((await send(sender, 'https://dangling.test/')).error).toBe('dns: ENODATA');
    expect((await send(sender, 'https://unknown.test/')).error).toBe('dns: ENOTFOUND');
    expect(dials).toEqual([]);
  });
});

describe('a redirect', () => {
  it.each([301, 302, 303, 307, 308])(
    'is recorded and not followed with %i to a private address',
    async (status) => {
      const canary = await startCanary();
      const dials = watchDials();
      const inner = [
        'http://169.254.169.254/latest/meta-data/',
        `http://127.0.0.1:${canary.port}/`,
        `https://[::1]:${canary.port}/`,
        `//127.0.0.1:${canary.port}/`,
        '/other',
      ];
      let requests = 0;
      const url = await http((_request, response) => {
        response.writeHead(status, { location: inner[requests++], refresh: `0; url=${inner[0]}` }).end();
      });
      // This holds even where every address is allowed.
      const sender = senderWith();
      for (const location of inner) {
        const result = await send(sender, url);
        expect(result).toMatchObject({ outcome: 'failed', statusCode: status, error: 'http_status' });
        expect(result.responseHeaders).toMatchObject({ location });
      }
      expect([requests, canary.count()]).toEqual([inner.length, 0]);
      expect(new Set(dials)).toEqual(new Set([`127.0.0.1 ${new URL(url).port}`]));
    },
  );
});
