import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestService, type TestPartner, type TestService } from '../harness/index.js';
import { exchange, mintCode, PortalBrowser } from '../harness/portal.js';

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

const guess = async (): Promise<number> => (await exchange(url, `pst_${'x'.repeat(43)}`)).status;

describe('people behind the address of somebody who guesses codes', () => {
  it('sign in, and learn of an ended session, while the guesses get 429', async () => {
    const codes = await Promise.all(Array.from({ length: 30 }, () => mintCode(service.admin, partner.id)));
    const guesses = await Promise.all(Array.from({ length: 30 }, guess));
    expect(new Set(guesses)).toEqual(new Set([401, 429]));
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
])('with %o the portal logs at start that no proxy is trusted: %i time(s)', async (env, times) => {
  const logLines: string[] = [];
  const portal = await startTestService({ role: 'portal', database: service.database, env, logLines });
  await portal.stop();
  const warned = logLines.filter((line) => line.includes('"portal.proxies_not_trusted"'));
  expect(warned).toHaveLength(times);
});
