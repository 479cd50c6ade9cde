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
import { exchange, mintCode, openPortal, PortalBrowser } from '../harness/portal.js';
import { ADMIN_TOKEN } from '../harness/settings.js';

const SUPPORT = randomBytes(24).toString('hex');
const ADMIN_TOKENS = `portal:${ADMIN_TOKEN},support:${SUPPORT}`;

let service: TestService;
let partner: TestPartner;
let sessions: string;

beforeAll(async () => {
  service = await startTestService({ env: { ADMIN_TOKENS } });
  partner = await service.createPartner();
  sessions = `/internal/v1/partners/${partner.id}/portal-sessions`;
});
afterAll(() => service.stop());

const portalUrl = (): string => service.process.portal!.url;
const open = (terms = {}): Promise<PortalBrowser> =>
  openPortal(service.admin, portalUrl(), partner.id, terms);

describe('a session never has more than its minter, whose token', () => {
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

  it('has lost a scope since', async () => {
    const narrowed = { ADMIN_TOKENS, ADMIN_TOKEN_SCOPES: 'support=orders:read' };
    await withSettings(narrowed, await bySupport(), async (there) => {
      expect((await there.get('session')).body.data.scopes).toEqual(['orders:read']);
      expect((await there.get('orders?mode=sandbox')).status).toBe(200);
      expect((await there.get('api-keys?mode=sandbox')).status).toBe(403);
    });
  });

  it('was taken away since: neither the session nor its code works', async () => {
    const code = await mintCode(new HttpClient(service.process.admin!.url, SUPPORT), partner.id);
    await withSettings({ ADMIN_TOKENS: `portal:${ADMIN_TOKEN}` }, await bySupport(), async (there) => {
      expect((await there.get('session')).status).toBe(401);
      const spent = await exchange(there.baseUrl, code);
      expect([spent.status, spent.headers.get('set-cookie')]).toEqual([401, null]);
    });
  });
});

describe('a page of the portal', () => {
  const pageOf = (id: string): { headers: Record<string, string> } => ({
    headers: { 'x-portal-session': id },
  });

  it('whose browser has got another session neither reads nor changes anything in it', async () => {
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
  it('writes as little at a time as with one, and leaves connections to other partners', async () => {
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
      expect((await other.post('api-keys', { mode: 'sandbox' })).status).toBe(201);
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
  it('is checked as the router reads it, however it is written', async () => {
    const { cookie } = await open();
    const answer = await fetch(`${portalUrl()}/%70ortal/v1/session`, { headers: { cookie } });
    expect(answer.status).toBe(200);
    expect(await answer.text()).toContain(partner.id);
  });
});

describe('the audit log', () => {
  it('says when the code of a link became a session, and whose, without the code', async () => {
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

describe('a session that is made at the same moment as', () => {
  /** Holds the partner as `sql` does, in a transaction that has not ended, while `call` is made. */
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

  it('a suspension is refused', async () => {
    const suspend = `UPDATE partners SET status = 'suspended', suspended_at = clock_timestamp() WHERE id = $1`;
    const minted = await during(suspend, () => service.admin.post(sessions, { actor: { id: 'user-1' } }));
    expect([minted.status, minted.body.code]).toEqual([403, 'partner_suspended']);
    await service.admin.post(`/internal/v1/partners/${partner.id}/reinstate`);
  });

  it('the revocation of all is among them', async () => {
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
