import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  eventually,
  HttpClient,
  startTestService,
  type TestPartner,
  type TestService,
  waitingForLocks,
} from '../harness/index.js';
import { ownSweepsHaveRun } from '../harness/own-sweeps.js';
import { exchange, mintCode, openPortal, PortalBrowser } from '../harness/portal.js';
import { ADMIN_TOKEN } from '../harness/settings.js';

const NARROW = randomBytes(24).toString('hex');
const SUPPORT = randomBytes(24).toString('hex');
const ADMIN_TOKENS = `portal:${ADMIN_TOKEN},narrow:${NARROW},support:${SUPPORT}`;

let service: TestService;
let other: TestService;
let partner: TestPartner;
let sessions: string;

beforeAll(async () => {
  service = await startTestService({ env: { ADMIN_TOKENS, API_URL: 'https://api.example/' } });
  other = await startTestService({
    database: service.database,
    env: { ADMIN_TOKENS, ADMIN_TOKEN_SCOPES: 'narrow=orders:read+keys:read' },
  });
  partner = await service.createPartner('Session Travel');
  sessions = `/internal/v1/partners/${partner.id}/portal-sessions`;
});
afterAll(async () => {
  await other.stop();
  await service.stop();
});

const portalUrl = (): string => service.process.portal!.url;
const open = (terms = {}): Promise<PortalBrowser> =>
  openPortal(service.admin, portalUrl(), partner.id, terms);
/** The same cookie at another process. */
const elsewhere = ({ cookie }: PortalBrowser): PortalBrowser =>
  new PortalBrowser(other.process.portal!.url, cookie);

describe('a portal session', () => {
  it('starts with a link, and shows its owner and its rights', async () => {
    const terms = {
      scopes: ['keys:read', 'orders:read'],
      modes: ['sandbox'],
      return_url: 'https://portal.example/a',
    };
    const minted = await service.admin.post(sessions, { actor: { id: 'user-1', name: 'Ada' }, ...terms });
    expect(minted.status).toBe(201);
    const { id, url, code_expires_at } = minted.body.data;
    expect(url).toMatch(/^http:\/\/localhost:\d+\/#code=pst_[A-Za-z0-9_-]{43}$/);
    expect(Date.parse(code_expires_at) - Date.now()).toBeLessThanOrEqual(300_000);
    const begun = await exchange(portalUrl(), url.split('#code=')[1]);
    expect(begun.status).toBe(200);
    expect(begun.headers.get('set-cookie')).toMatch(
      /^portal=[A-Za-z0-9_-]{43}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=\d+$/,
    );
    const browser = new PortalBrowser(portalUrl(), begun.headers.get('set-cookie')!.split(';')[0]!);
    const shown = (await browser.get('session')).body.data;
    expect(shown).toEqual(begun.body.data);
    expect(shown).toMatchObject({
      id,
      partner: { id: partner.id, name: 'Session Travel', status: 'active' },
      actor: { id: 'user-1', name: 'Ada' },
      ...terms,
      api_url: 'https://api.example',
      branding: { name: 'eSIM Partner Portal', logo_url: null, accent: null },
    });
    expect(Date.parse(shown.step_up_until) - Date.parse(shown.expires_at)).toBe(900_000 - 28_800_000);
  });

  it('goes on when its browser opens a used link of the same partner', async () => {
    const code = await mintCode(service.admin, partner.id);
    const begun = await exchange(portalUrl(), code);
    const cookie = begun.headers.get('set-cookie')!.split(';')[0]!;
    const again = await new PortalBrowser(portalUrl(), cookie).post('session', { code });
    expect([again.status, again.headers.get('set-cookie')]).toEqual([200, null]);
    expect(again.body.data).toEqual(begun.body.data);
    expect((await exchange(portalUrl(), code)).status).toBe(401);

    const stranger = await service.createPartner('Stranger Travel');
    const foreign = await mintCode(service.admin, stranger.id);
    await exchange(portalUrl(), foreign);
    const browser = new PortalBrowser(portalUrl(), cookie);
    for (const other of [foreign, `pst_${'x'.repeat(43)}`])
      expect((await browser.post('session', { code: other })).status).toBe(401);
    await browser.call('DELETE', 'session');
    expect((await browser.post('session', { code })).status).toBe(401);
  });

  it('begins anew with a new link, also in a browser that has one', async () => {
    const first = await open();
    const code = await mintCode(service.admin, partner.id);
    const second = await first.post('session', { code });
    expect(second.status).toBe(200);
    expect(second.headers.get('set-cookie')).not.toBeNull();
    expect(second.body.data.id).not.toBe((await first.get('session')).body.data.id);
  });

  it('stores neither its code nor its cookie, and returns each only once', async () => {
    const key = { idempotencyKey: 'portal-session-once' };
    const body = { actor: { id: 'user-2' } };
    const first = await service.admin.post(sessions, body, key);
    const code = (first.body.data.url as string).split('#code=')[1]!;
    const again = await service.admin.post(sessions, body, key);
    expect(again.body.data).toMatchObject({ id: first.body.data.id, url: null });
    const begun = await exchange(portalUrl(), code);
    const token = begun.headers.get('set-cookie')!.split(';')[0]!.split('=')[1]!;
    const { rows } = await service.database.pool.query(
      `SELECT (SELECT string_agg(s::text, '') FROM portal_sessions s) || (SELECT string_agg(k::text, '') FROM idempotency_keys k)
              || (SELECT string_agg(a::text, '') FROM audit_log a) AS everything`,
    );
    const kept = (rows[0] as { everything: string }).everything;
    expect(kept).toContain(first.body.data.id);
    expect(kept).not.toContain(code);
    expect(kept).not.toContain(token);
    expect((await service.admin.get(sessions)).text).not.toContain(code);
  });

  it('is created once per code, even if two processes receive it fifty times', async () => {
    const code = await mintCode(service.admin, partner.id);
    const urls = [portalUrl(), other.process.portal!.url];
    const answers = await Promise.all(Array.from({ length: 50 }, (_, i) => exchange(urls[i % 2]!, code)));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    const refused = answers.filter(({ status }) => status !== 200);
    expect(new Set(refused.map(({ body }) => body.code))).toEqual(new Set(['unauthorized']));
    expect(refused.every(({ headers }) => headers.get('set-cookie') === null)).toBe(true);
    expect((await exchange(portalUrl(), code)).status).toBe(401);
  });

  it('is not created from a code that is five minutes old', async () => {
    const code = await mintCode(service.admin, partner.id);
    await service.database.pool.query(
      `UPDATE portal_sessions SET code_expires_at = now() WHERE exchanged_at IS NULL`,
    );
    expect((await exchange(portalUrl(), code)).status).toBe(401);
  });

  it.each(['revoked', 'ended by itself', 'revoked with all', 'of a suspended partner'])(
    'returns 401 on the next call of every process once it is %s',
    async (how) => {
      const browser = await open();
      const { id } = (await browser.get('session')).body.data;
      expect((await elsewhere(browser).get('session')).status).toBe(200);
      if (how === 'revoked')
        expect((await service.admin.call('DELETE', `${sessions}/${id}`)).status).toBe(200);
      if (how === 'ended by itself') expect((await browser.call('DELETE', 'session')).status).toBe(200);
      if (how === 'revoked with all')
        expect((await service.admin.post(`${sessions}/revoke-all`)).body.data.revoked).toBeGreaterThan(0);
      if (how === 'of a suspended partner') {
        await service.admin.post(`/internal/v1/partners/${partner.id}/suspend`);
        expect((await elsewhere(browser).get('session')).status).toBe(401);
        expect((await service.admin.post(sessions, { actor: { id: 'user-3' } })).body.code).toBe(
          'partner_suspended',
        );
        // A session that was ended by the suspension stays ended.
        await service.admin.post(`/internal/v1/partners/${partner.id}/reinstate`);
      }
      for (const each of [browser, elsewhere(browser)]) {
        const answer = await each.get('session');
        expect([answer.status, answer.body.code]).toEqual([401, 'unauthorized']);
      }
      expect((await open()).cookie).not.toBe(browser.cookie);
    },
  );

  it('ends at its expiry', async () => {
    const browser = await open({ ttl_seconds: 300 });
    const { id } = (await browser.get('session')).body.data;
    await service.database.pool.query('UPDATE portal_sessions SET expires_at = now() WHERE id = $1', [id]);
    expect((await browser.get('session')).status).toBe(401);
    const listed = (await service.admin.get(sessions)).body.data as { id: string; status: string }[];
    expect(listed.find((each) => each.id === id)?.status).toBe('ended');
  });

  it('gets no scope that its minter lacks, and the whole call is refused', async () => {
    const narrow = new HttpClient(other.process.admin!.url, NARROW);
    const actor = { id: 'user-4' };
    const refused = await narrow.post(sessions, { actor, scopes: ['orders:read', 'keys:write'] });
    expect([refused.status, refused.body.code]).toEqual([403, 'forbidden']);
    expect((await narrow.post(sessions, { actor, scopes: ['keys:read'] })).status).toBe(201);
    const all = await openPortal(narrow, other.process.portal!.url, partner.id);
    expect((await all.get('session')).body.data.scopes.sort()).toEqual(['keys:read', 'orders:read']);
  });

  it.each([
    [{}, '/actor'],
    [{ actor: { id: 'a' }, scopes: [] }, '/scopes'],
    [{ actor: { id: 'a' }, scopes: ['all'] }, '/scopes'],
    [{ actor: { id: 'a' }, modes: ['test'] }, '/modes'],
    [{ actor: { id: 'a' }, ttl_seconds: 299 }, '/ttl_seconds'],
    [{ actor: { id: 'a' }, return_url: 'javascript:alert(1)' }, '/return_url'],
  ])('cannot be created from %j', async (body, pointer) => {
    const answer = await service.admin.post(sessions, body);
    expect([answer.status, answer.body.errors?.[0].pointer]).toEqual([400, pointer]);
  });

  it('is purged after its retention, and not earlier', async () => {
    const browser = await open();
    for (const each of [service, other]) await ownSweepsHaveRun(each, 'retention.portal_sessions');
    const { rows } = await service.database.pool.query<{ id: string }>(
      `INSERT INTO portal_sessions (id, partner_id, minted_by, actor_id, scopes, modes, code_hash, code_expires_at, expires_at)
       SELECT 'ps_old_' || n, $1, 'portal', 'user-5', '{keys:read}', '{sandbox}', sha256(n::text::bytea), now(),
              now() - n * interval '1 day' FROM unnest(ARRAY[29, 31]) AS n RETURNING id`,
      [partner.id],
    );
    expect(rows).toHaveLength(2);
    const { PortalSessionsRepository } =
      await import('../../src/portal-sessions/portal-sessions.repository.js');
    const repository = service.process.admin!.nest.get(PortalSessionsRepository, { strict: false });
    expect(await repository.purge(30, 1_000)).toBe(1);
    expect((await browser.get('session')).status).toBe(200);
  });
});

describe("a session after a change of its minter's token", () => {
  const bySupport = (): Promise<PortalBrowser> =>
    openPortal(new HttpClient(service.process.admin!.url, SUPPORT), portalUrl(), partner.id, {
      scopes: ['keys:read', 'orders:read'],
    });

  async function withSettings(
    env: Record<string, string>,
    browser: PortalBrowser,
    check: (there: PortalBrowser) => Promise<void>,
  ): Promise<void> {
    const restarted = await startTestService({ role: 'portal', database: service.database, env });
    try {
      await check(new PortalBrowser(restarted.process.portal!.url, browser.cookie));
    } finally {
      await restarted.stop();
    }
  }

  it('loses a scope that the token has lost', async () => {
    const narrowed = { ADMIN_TOKENS, ADMIN_TOKEN_SCOPES: 'support=orders:read' };
    await withSettings(narrowed, await bySupport(), async (there) => {
      expect((await there.get('session')).body.data.scopes).toEqual(['orders:read']);
      expect((await there.get('orders?mode=sandbox')).status).toBe(200);
      expect((await there.get('api-keys?mode=sandbox')).status).toBe(403);
    });
  });

  it('ends when the token was removed, and its code stops working', async () => {
    const code = await mintCode(new HttpClient(service.process.admin!.url, SUPPORT), partner.id);
    await withSettings({ ADMIN_TOKENS: `portal:${ADMIN_TOKEN}` }, await bySupport(), async (there) => {
      expect((await there.get('session')).status).toBe(401);
      const spent = await exchange(there.baseUrl, code);
      expect([spent.status, spent.headers.get('set-cookie')]).toEqual([401, null]);
    });
  });
});

describe('a portal page', () => {
  const pageOf = (id: string): { headers: Record<string, string> } => ({
    headers: { 'x-portal-session': id },
  });

  it('cannot read or change a session that replaced its own in the browser', async () => {
    const stranger = await service.createPartner('Other Travel');
    const page = (await (await open()).get('session')).body.data.id as string;
    const browser = await openPortal(service.admin, portalUrl(), stranger.id);
    const own = (await browser.get('session')).body.data.id as string;
    const answers = [
      await browser.call('GET', 'api-keys?mode=sandbox', pageOf(page)),
      await browser.call('GET', 'session', pageOf('nonsense')),
      await browser.call('POST', 'api-keys', { body: { mode: 'sandbox' }, ...pageOf(page) }),
      await browser.call('DELETE', 'session', { body: {}, ...pageOf(page) }),
    ];
    for (const { status, body } of answers) expect([status, body.code]).toEqual([409, 'session_changed']);
    for (const { text } of answers) expect(text).not.toContain(own);
    const listed = await browser.call('GET', 'api-keys?mode=sandbox', pageOf(own));
    expect(listed.status).toBe(200);
    expect(listed.body.data).toHaveLength(1);
  });
});

describe('a partner with many sessions', () => {
  it('writes as little at a time as with one session, and leaves connections for other partners', async () => {
    const env = { DATABASE_POOL_MAX: '4', ADMIN_TOKENS };
    const portal = await startTestService({ role: 'portal', database: service.database, env });
    const there = ({ cookie }: PortalBrowser): PortalBrowser =>
      new PortalBrowser(portal.process.portal!.url, cookie);
    const crowd = (await Promise.all(Array.from({ length: 6 }, () => open()))).map(there);
    const stranger = await service.createPartner('Other Travel');
    const other = there(await openPortal(service.admin, portalUrl(), stranger.id));
    const holder = await service.database.pool.connect();
    let made: Promise<unknown>[] = [];
    try {
      await holder.query('BEGIN');
      await holder.query('SELECT 1 FROM partners WHERE id = $1 FOR UPDATE', [partner.id]);
      made = crowd.map((browser) => browser.post('api-keys', { mode: 'sandbox' }));
      await eventually('two writes wait', async () => (await waitingForLocks(service.database)) === 2);
      // A busy machine may be too slow for one call, but without a connection every call fails.
      const isMade = async () => (await other.post('api-keys', { mode: 'sandbox' })).status === 201;
      expect((await isMade()) || (await isMade())).toBe(true);
      expect(await waitingForLocks(service.database)).toBe(2);
    } finally {
      await holder.query('ROLLBACK');
      holder.release();
      await Promise.allSettled(made);
      await portal.stop();
    }
  });
});

describe('the path of a call', () => {
  it('is checked in the form that the router sees, however it is written', async () => {
    const { cookie } = await open();
    const answer = await fetch(`${portalUrl()}/%70ortal/v1/session`, { headers: { cookie } });
    expect(answer.status).toBe(200);
    expect(await answer.text()).toContain(partner.id);
  });
});

describe('the audit log', () => {
  it("records when a link's code became a session and whose session it is, but not the code", async () => {
    const code = await mintCode(service.admin, partner.id);
    const begun = await exchange(portalUrl(), code);
    await exchange(portalUrl(), code);
    const { id } = begun.body.data;
    const log = await service.admin.get(`/internal/v1/audit-log?subject_id=${id}`);
    const entries = log.body.data as Record<string, unknown>[];
    expect(entries.map(({ action }) => action)).toEqual(['portal_session.begun', 'portal_session.created']);
    expect(entries[0]).toMatchObject({
      actor: 'portal',
      portal_user: 'user-17',
      session_id: id,
      partner_id: partner.id,
      request_id: begun.body.request_id,
    });
    expect(log.text).not.toContain(code);
  });
});

describe('a session that is created concurrently', () => {
  /** Makes `call` while an open transaction that ran `sql` locks the partner, and then commits it. */
  async function during<T>(sql: string, call: () => Promise<T>): Promise<T> {
    const holder = await service.database.pool.connect();
    try {
      await holder.query('BEGIN');
      await holder.query(sql, [partner.id]);
      const { rows } = await holder.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
      let hasEnded = false;
      const answer = call().finally(() => (hasEnded = true));
      await eventually('the call waits', async () => {
        expect(hasEnded).toBe(false);
        const waiting = await service.database.pool.query(
          'SELECT 1 FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))',
          [rows[0]!.pid],
        );
        return waiting.rows.length > 0;
      });
      await holder.query('COMMIT');
      return await answer;
    } finally {
      holder.release(true);
    }
  }

  it('is refused when the partner is suspended in the meantime', async () => {
    const suspend = `UPDATE partners SET status = 'suspended', suspended_at = clock_timestamp() WHERE id = $1`;
    const minted = await during(suspend, () => service.admin.post(sessions, { actor: { id: 'user-1' } }));
    expect([minted.status, minted.body.code]).toEqual([403, 'partner_suspended']);
    await service.admin.post(`/internal/v1/partners/${partner.id}/reinstate`);
  });

  it('is revoked too when all sessions are revoked in the meantime', async () => {
    const browser = await open();
    const { id } = (await browser.get('session')).body.data;
    const mint = `WITH partner AS (SELECT id FROM partners WHERE id = $1 FOR SHARE)
      INSERT INTO portal_sessions (id, partner_id, minted_by, actor_id, scopes, modes, code_hash, code_expires_at, expires_at)
      SELECT 'ps_meanwhile', id, 'portal', 'user-5', '{keys:read}', '{sandbox}', sha256('x'),
             now() + interval '1 minute', now() + interval '1 hour' FROM partner`;
    const revoked = await during(mint, () => service.admin.post(`${sessions}/revoke-all`));
    expect(revoked.status).toBe(200);
    const listed = (await service.admin.get(sessions)).body.data as { id: string; status: string }[];
    const states = new Map(listed.map((each) => [each.id, each.status]));
    expect([states.get('ps_meanwhile'), states.get(id as string)]).toEqual(['ended', 'ended']);
  });
});
