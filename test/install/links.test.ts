import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { InstallLinksRepository } from '../../src/install-links/install-links.repository.js';
import { expectProblem } from '../harness/expect-problem.js';
import {
  eventually,
  type HttpClient,
  startTestService,
  type TestPartner,
  type TestService,
} from '../harness/index.js';
import { issueEsim, type Json } from '../harness/order-steps.js';
import { ownSweepsHaveRun } from '../harness/own-sweeps.js';
import { openPortal } from '../harness/portal.js';
import { createLink } from './install-steps.js';

let service: TestService;
let partner: TestPartner;
let api: HttpClient;
let esimId: string;
let path: string;
beforeAll(async () => {
  service = await startTestService({ env: { INSTALL_URL: 'https://install.example' } });
  partner = await service.createPartner();
  api = partner.sandbox;
  esimId = await issueEsim(api, 'pkg_fr_1gb_7d');
  path = `/v1/esims/${esimId}/install-links`;
});
afterAll(() => service.stop());

const rows = async (text: string, values: unknown[] = []): Promise<Json[]> =>
  (await service.database.pool.query<Json>(text, values)).rows;

describe('an install link', () => {
  it('is shown once: a replay, a read and a list have neither address nor code', async () => {
    const idempotencyKey = randomUUID();
    const terms = { expires_in_days: 2, locale: 'ja', access_code: true };
    const { status, body, headers } = await api.post(path, terms, { idempotencyKey });
    expect(status).toBe(201);
    const { url, access_code, ...link } = body.data as Json;
    expect(url).toMatch(/^https:\/\/install\.example\/i\/[\w-]{43}$/);
    expect(access_code).toMatch(/^\d{8}$/);
    expect(link).toMatchObject({ esim_id: esimId, locale: 'ja', opened_count: 0, last_opened_at: null });
    expect(Date.parse(link['expires_at']) - Date.parse(link['created_at'])).toBe(2 * 86_400_000);
    expect(headers.get('location')).toBe(`${path}/${link['id']}`);
    const replay = await api.post(path, terms, { idempotencyKey });
    expect(replay.headers.get('idempotent-replayed')).toBe('true');
    expect(replay.body.data).toEqual({ ...link, url: null, access_code: null });
    expect((await api.get(`${path}/${link['id']}`)).body.data).toEqual(link);
    expect((await api.get(`${path}?limit=1`)).body.data).toEqual([link]);
  });

  it('is stored without its token and its code', async () => {
    const { token, accessCode, id } = await createLink(api, esimId, { access_code: true });
    const stored = JSON.stringify(await rows('SELECT * FROM install_links WHERE id = $1', [id]));
    const kept = JSON.stringify(await rows('SELECT * FROM idempotency_keys'));
    for (const text of [stored, kept]) {
      expect(text).not.toContain(token);
      expect(text).not.toContain(accessCode);
    }
  });

  it('lasts 30 days by default, and accepts no body', async () => {
    const { body } = await api.post(path);
    const { expires_at, created_at } = body.data as Json;
    expect(Date.parse(expires_at) - Date.parse(created_at)).toBe(30 * 86_400_000);
  });

  it.each([
    { expires_in_days: 0 },
    { expires_in_days: 366 },
    { locale: 'sv' },
    { access_code: 'yes' },
    { token: 'mine' },
  ])('refuses %j', async (body) => {
    expectProblem(await api.post(path, body), 400, 'validation_failed');
  });

  it('is revoked once, and then gone', async () => {
    const { id } = await createLink(api, esimId);
    const revoked = await api.call('DELETE', `${path}/${id}`);
    expect(revoked.body.data).toEqual({ id, revoked: true });
    for (const method of ['GET', 'DELETE'])
      expectProblem(await api.call(method, `${path}/${id}`), 404, 'not_found');
  });

  it('is a 404 for another partner, mode or eSIM', async () => {
    const { id } = await createLink(api, esimId);
    const stranger = (await service.createPartner('Other')).sandbox;
    const live = service.partnerApi(await service.createKey(partner.id, 'live'));
    for (const other of [stranger, live]) {
      expectProblem(await other.get(path), 404, 'not_found');
      expectProblem(await other.post(path), 404, 'not_found');
      for (const method of ['GET', 'DELETE'])
        expectProblem(await other.call(method, `${path}/${id}`), 404, 'not_found');
    }
    const elsewhere = `/v1/esims/${await issueEsim(api, 'pkg_fr_1gb_7d')}/install-links/${id}`;
    for (const method of ['GET', 'DELETE'])
      expectProblem(await api.call(method, elsewhere), 404, 'not_found');
    expect((await api.get(`${path}/${id}`)).status).toBe(200);
  });

  it('needs the scope install:read', async () => {
    const keys = `/internal/v1/partners/${partner.id}/api-keys`;
    const keyWith = async (scope: string): Promise<HttpClient> => {
      const { body } = await service.admin.post(keys, { mode: 'sandbox', scopes: [scope] });
      return service.partnerApi(body.data.key as string);
    };
    expectProblem(await (await keyWith('esims:read')).post(path), 403, 'forbidden');
    expect((await (await keyWith('install:read')).post(path)).status).toBe(201);
  });

  it('is refused for an ended eSIM, and beyond 20 per eSIM', async () => {
    const crowded = await issueEsim(api, 'pkg_fr_1gb_7d');
    const links = `/v1/esims/${crowded}/install-links`;
    const created = await Promise.all(Array.from({ length: 22 }, () => api.post(links)));
    expect(created.filter(({ status }) => status === 201)).toHaveLength(20);
    expectProblem(await api.post(links), 409, 'limit_reached');
    const ended = await issueEsim(api, 'pkg_fr_1gb_7d');
    await api.post(`/v1/sandbox/esims/${ended}/activate`);
    await api.post(`/v1/sandbox/esims/${ended}/expire`);
    expectProblem(await api.post(`/v1/esims/${ended}/install-links`), 409, 'esim_expired');
    const revoked = await issueEsim(api, 'pkg_fr_1gb_7d');
    expect((await api.post(`/v1/esims/${revoked}/revoke`)).status).toBe(202);
    const isCanceled = async () => (await api.get(`/v1/esims/${revoked}`)).body.data.status === 'canceled';
    await eventually('it is canceled', isCanceled);
    expectProblem(await api.post(`/v1/esims/${revoked}/install-links`), 409, 'esim_not_ready');
  });

  it('goes with its eSIM, and after its retention', async () => {
    const doomed = await issueEsim(api, 'pkg_fr_1gb_7d');
    await createLink(api, doomed);
    await rows('DELETE FROM esims WHERE id = $1', [doomed]);
    expect(await rows('SELECT 1 FROM install_links WHERE esim_id = $1', [doomed])).toEqual([]);
    await ownSweepsHaveRun(service, 'retention.install_links');
    const old = await createLink(api, esimId);
    const recent = await createLink(api, esimId);
    const expire = `UPDATE install_links SET expires_at = now() - $2::int * interval '1 day' WHERE id = $1`;
    await rows(expire, [old.id, 31]);
    await rows(expire, [recent.id, 29]);
    const repository = new InstallLinksRepository(service.process.resources.dataSource.manager, null!);
    expect(await repository.purge(30, 1_000)).toBe(1);
    expect((await api.get(`${path}/${old.id}`)).status).toBe(404);
    expect((await api.get(`${path}/${recent.id}`)).status).toBe(200);
  });
});

describe('an install link in the portal', () => {
  it('is created, listed and revoked by a session, with entries in the audit log', async () => {
    const portal = await openPortal(service.admin, service.process.portal!.url, partner.id);
    const created = await portal.post(`esims/${esimId}/install-links`, { locale: 'fr' });
    expect(created.status, created.text).toBe(201);
    const { id, url } = created.body.data as Json;
    expect(url).toMatch(/\/i\/[\w-]{43}$/);
    const listed = await portal.get(`esims/${esimId}/install-links`);
    expect((listed.body.data as Json[]).map((link) => link['id'])).toContain(id);
    await rows('UPDATE install_links SET last_opened_at = $2 WHERE id = $1', [id, '2026-11-21T10:00:00Z']);
    const { order_id: orderId } = (await api.get(`/v1/esims/${esimId}`)).body.data as Json;
    const [shown] = (await portal.get(`orders/${orderId}`)).body.data.esims as Json[];
    expect(shown!['install_links'].count).toBe((listed.body.data as Json[]).length);
    expect(shown!['install_links'].last_opened_at).toBe('2026-11-21T10:00:00.000Z');
    expect((await portal.call('DELETE', `esims/${esimId}/install-links/${id}`)).status).toBe(200);
    const log = await service.admin.get(`/internal/v1/audit-log?partner_id=${partner.id}`);
    const entries = (log.body.data as Json[]).filter((entry) => entry['subject_id'] === id);
    expect(entries.map((entry) => entry['action'])).toEqual(['install_link.revoked', 'install_link.created']);
    expect(entries[1]!['details']).toMatchObject({ esim_id: esimId, locale: 'fr', access_code: false });
    expect(log.text).not.toContain((url as string).split('/i/')[1]);
  });

  it('is hidden from a session without the mode or the scope', async () => {
    const open = (terms: object) => openPortal(service.admin, service.process.portal!.url, partner.id, terms);
    const live = await open({ modes: ['live'] });
    expect((await live.post(`esims/${esimId}/install-links`)).status).toBe(404);
    const keys = await open({ scopes: ['keys:read'] });
    expect((await keys.post(`esims/${esimId}/install-links`)).status).toBe(403);
  });
});
