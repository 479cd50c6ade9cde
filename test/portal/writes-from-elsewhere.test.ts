import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestService, type TestPartner, type TestService } from '../harness/index.js';
import { openPortal, type PortalBrowser } from '../harness/portal.js';

let service: TestService;
let partner: TestPartner;
let browser: PortalBrowser;

beforeAll(async () => {
  service = await startTestService({ env: { PORTAL_URL: 'https://portal.example' } });
  partner = await service.createPartner();
  browser = await openPortal(service.admin, service.process.portal!.url, partner.id);
});
afterAll(() => service.stop());

const keys = async (): Promise<number> =>
  ((await service.admin.get(`/internal/v1/partners/${partner.id}/api-keys?limit=100`)).body.data as unknown[])
    .length;

describe('a change in the portal', () => {
  it.each([
    ['another site', { 'sec-fetch-site': 'cross-site' }],
    ['a sibling host', { 'sec-fetch-site': 'same-site' }],
    [
      'a browser that sends only an Origin header',
      { 'sec-fetch-site': undefined, origin: 'https://evil.example' },
    ],
    ['an opaque origin', { 'sec-fetch-site': undefined, origin: 'null' }],
  ])('is refused from %s', async (_from, sent) => {
    const before = await keys();
    const headers = Object.fromEntries(
      Object.entries({ cookie: browser.cookie, 'content-type': 'application/json', ...sent }).filter(
        (each): each is [string, string] => each[1] !== undefined,
      ),
    );
    const call = (method: string, path: string, body?: object): Promise<Response> =>
      fetch(`${service.process.portal!.url}/portal/v1/${path}`, {
        method,
        headers,
        ...(body ? { body: JSON.stringify(body) } : {}),
      });
    const answers = [
      await call('POST', 'api-keys', { mode: 'sandbox', name: 'forged' }),
      await call('DELETE', 'session'),
      await call('POST', 'session', { code: 'pst_x' }),
    ];
    for (const answer of answers) {
      expect(answer.status).toBe(403);
      expect(answer.headers.get('set-cookie')).toBeNull();
    }
    expect(await keys()).toBe(before);
    expect((await browser.get('session')).status).toBe(200);
  });

  it('is accepted from its own page, by either header', async () => {
    const host = new URL(service.process.portal!.url).host;
    const body = { mode: 'sandbox' };
    expect((await browser.call('POST', 'api-keys', { body })).status).toBe(201);
    const response = await fetch(`${service.process.portal!.url}/portal/v1/api-keys`, {
      method: 'POST',
      headers: { cookie: browser.cookie, origin: `https://${host}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    expect(response.status).toBe(201);
  });

  it('is refused from a page of the same host without TLS', async () => {
    const { host } = new URL(service.process.portal!.url);
    const response = await fetch(`${service.process.portal!.url}/portal/v1/api-keys`, {
      method: 'POST',
      headers: { cookie: browser.cookie, origin: `http://${host}`, 'content-type': 'application/json' },
      body: JSON.stringify({ mode: 'sandbox' }),
    });
    expect(response.status).toBe(403);
  });

  it.each(['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x'])(
    'is refused as %s',
    async (type) => {
      const before = await keys();
      const answer = await browser.call('POST', 'api-keys', {
        body: '{"mode":"sandbox"}',
        headers: { 'content-type': type },
      });
      expect(answer.status).toBe(415);
      expect(await keys()).toBe(before);
    },
  );

  it('requires exactly one complete cookie', async () => {
    const [name = '', token = ''] = browser.cookie.split('=');
    expect(name).toBe('__Host-portal');
    for (const cookie of [
      '',
      `portal=${token}`,
      `${browser.cookie}; ${browser.cookie}`,
      `${name}=${token.slice(1)}`,
    ]) {
      const answer = await browser.call('GET', 'session', { headers: { cookie } });
      expect([cookie, answer.status]).toEqual([cookie, 401]);
    }
    const among = await browser.call('GET', 'session', {
      headers: { cookie: `a=1; ${browser.cookie}; b=2` },
    });
    expect(among.status).toBe(200);
  });
});

describe('the cookie', () => {
  it('is bound to its host and to TLS when the portal is served over https', async () => {
    const minted = await service.admin.post(`/internal/v1/partners/${partner.id}/portal-sessions`, {
      actor: { id: 'user-1' },
    });
    expect(minted.body.data.url).toMatch(/^https:\/\/portal\.example\/#code=/);
    const begun = await fetch(`${service.process.portal!.url}/portal/v1/session`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ code: (minted.body.data.url as string).split('#code=')[1] }),
    });
    expect(begun.headers.get('set-cookie')).toMatch(
      /^__Host-portal=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; .*; Secure$/,
    );
  });
});
