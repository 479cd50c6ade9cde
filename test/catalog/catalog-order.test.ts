import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type HttpClient, startTestService, type TestService } from '../harness/index.js';

/** Package codes of real wholesalers, and unusual ones. */
const CODES = [
  ...[
    'CKH179',
    '7aa948d363',
    'ckh179',
    'Ckh180',
    'PUS1D7',
    'pus_1d7',
    'PUS-1D7',
    'pus-1-d7',
    '0',
    '00',
    '_',
    '-',
  ],
  ...['7AA948D364', '7aa948d3640', '~', 'é1', 'Ő2', 'zz', 'ZZ', 'a', 'B', 'c', 'ﬀ', '𝒳1', '𝒳', 'ｚ'],
];
const IDS = CODES.map((code) => `pkg_a_${code}`);

let service: TestService;
let live: HttpClient;

beforeAll(async () => {
  service = await startTestService();
  const { id } = await service.createPartner();
  live = service.partnerApi(await service.createKey(id, 'live'));
  const { pool } = service.database;
  // All with the same time, as a synchronization writes them, then some within one millisecond.
  await pool.query(
    `INSERT INTO packages SELECT p.* FROM packages s, unnest($1::text[]) WITH ORDINALITY AS u (id, nth),
       LATERAL jsonb_populate_record(s, jsonb_build_object('id', u.id, 'mode', 'live', 'created_at',
         CASE WHEN u.nth % 3 = 0 THEN '2026-11-20T10:00:00.000Z'::timestamptz + u.nth * interval '1 microsecond'
              ELSE '2026-11-20T10:00:00Z'::timestamptz END)) AS p
     WHERE s.mode = 'sandbox' AND s.id = 'pkg_fr_1gb_7d'`,
    [IDS],
  );
  await pool.query(
    `INSERT INTO package_sources (package_id, provider, upstream_id, kind, cost_micros, cost_currency)
     SELECT id, 'esim_access', id, 'base', 1, 'USD' FROM packages WHERE mode = 'live'`,
  );
  await pool.query(`UPDATE catalog_versions SET version = version + 1 WHERE mode = 'live'`);
});
afterAll(() => service.stop());

async function pagedBy(limit: number): Promise<string[]> {
  const ids: string[] = [];
  let cursor: string | null = null;
  do {
    const query: string = cursor === null ? '' : `&cursor=${encodeURIComponent(cursor)}`;
    const answer = await live.get(`/v1/catalog?limit=${limit}${query}`);
    expect(answer.status, answer.text).toBe(200);
    ids.push(...(answer.body.data as { id: string }[]).map(({ id }) => id));
    cursor = answer.body.next_cursor as string | null;
  } while (cursor !== null);
  return ids;
}

describe('the Live catalog', () => {
  it.each([1, 3, 7, 100])('lists every package once at %i per page, whatever its code', async (limit) => {
    const ids = await pagedBy(limit);
    expect(ids.toSorted()).toEqual(IDS.toSorted());
    expect(ids).toEqual(await pagedBy(100));
  });
});
