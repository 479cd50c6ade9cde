import { existsSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestService, type TestPartner, type TestService } from '../harness/index.js';
import { exchange, mintCode, PortalBrowser } from '../harness/portal.js';

const BUILT = existsSync(path.resolve('dist/portal/index.html'));

let service: TestService;
let partner: TestPartner;
let url: string;

beforeAll(async () => {
  service = await startTestService({
    env: { PORTAL_RATE_LIMIT_BURST: '20', PORTAL_RATE_LIMIT_PER_MINUTE: '1' },
  });
  partner = await service.createPartner();
  url = service.process.portal!.url;
});
afterAll(() => service.stop());

describe('the portal', () => {
  it('serves one page at every address except the API, with a strict content security policy', async () => {
    for (const address of ['/', '/developers/webhooks', '/orders/ord_1?mode=live', '/a/b/c/d']) {
      const page = await fetch(url + address);
      expect([address, page.status]).toEqual([address, BUILT ? 200 : 503]);
      expect(page.headers.get('content-type')).toMatch(/^text\/html/);
      expect(page.headers.get('cache-control')).toBe('no-store');
      expect(page.headers.get('content-security-policy')).toBe(
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
          "font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
      );
      // Without a build, the page says how to create one.
      if (!BUILT) expect(await page.text()).toContain('npm run build');
    }
  });

  it.each([
    ...['/portal', '/portal/', '/portal/v1', '/portal/v1/nothing', '/portal/v1/session'],
    // Other spellings of the path.
    ...[
      '/%70ortal',
      '/%70ortal/v1/session',
      '/portal%2fv1',
      '/portal%2Fv1/session',
      '/%50ortal/%',
      '/%2570ortal%',
    ],
  ])('does not serve its page below %s', async (address) => {
    const answer = await fetch(url + address);
    expect(answer.headers.get('content-type')).toMatch(/^application\/problem\+json/);
    expect([401, 404]).toContain(answer.status);
  });

  it.each([
    '/assets/..%2f..%2fpackage.json',
    '/assets/../../package.json',
    '/assets/nothing.js',
    '/..%2fpackage.json',
  ])('does not expose other files: %s', async (address) => {
    const answer = await fetch(url + address);
    expect(await answer.text()).not.toContain('"workspaces"');
  });
});

const guess = async (): Promise<number> => (await exchange(url, `pst_${'x'.repeat(43)}`)).status;

describe('a person who shares an IP address with somebody who guesses codes', () => {
  it('can sign in and notice an ended session while the guesses get 429', async () => {
    const codes = await Promise.all(Array.from({ length: 30 }, () => mintCode(service.admin, partner.id)));
    const guesses = await Promise.all(Array.from({ length: 30 }, guess));
    expect(new Set(guesses)).toEqual(new Set([401, 429]));
    expect(guesses.filter((status) => status === 401).length).toBeGreaterThanOrEqual(20);
    const good = await Promise.all(codes.map((code) => exchange(url, code)));
    expect(good.map(({ status }) => status)).toEqual(codes.map(() => 200));
    const cookie = good[0]!.headers.get('set-cookie')!.split(';')[0]!;
    const browser = new PortalBrowser(url, cookie);
    expect((await browser.get('session')).status).toBe(200);
    expect((await browser.call('DELETE', 'session')).status).toBe(200);
    expect((await browser.get('session')).status).toBe(401);
    expect(await guess()).toBe(429);
  });
});

it.each([
  [{ PORTAL_URL: 'https://portal.example' }, 1],
  [{ PORTAL_URL: 'https://portal.example', TRUST_PROXY: '1' }, 0],
  [{ PORTAL_URL: 'http://localhost:3004' }, 0],
])('logs at startup with %o that no proxy is trusted: %i time(s)', async (env, times) => {
  const logLines: string[] = [];
  const portal = await startTestService({ role: 'portal', database: service.database, env, logLines });
  await portal.stop();
  const warned = logLines.filter((line) => line.includes('"portal.proxies_not_trusted"'));
  expect(warned).toHaveLength(times);
});
