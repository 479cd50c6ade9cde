import { afterAll, beforeAll, expect, it } from 'vitest';
import { startTestService, type TestService } from '../harness/index.js';
import { fillTable } from '../infra/database/filled-tables.js';

const CALLS = 5_000;

let service: TestService;

beforeAll(async () => {
  service = await startTestService({ role: 'admin' });
});
afterAll(() => service.stop());

it('searches the log for rare calls in bounded steps and finds each once (D43)', async () => {
  const { id } = await service.createPartner();
  await fillTable(service.database.pool, 'api_calls', CALLS, {
    partner_id: `'${id}'`,
    request_id: `'req' || i`,
    created_at: `now() - (i / 3) * interval '1 millisecond'`,
    method: `CASE WHEN i IN (7, ${CALLS - 1}, ${CALLS}) THEN 'PUT' ELSE 'GET' END`,
    route: `'/v1/orders'`,
    status: '200',
  });
  const found: string[] = [];
  let pages = 0;
  for (let cursor: string | null = ''; cursor !== null; pages++) {
    const path: string = `/internal/v1/partners/${id}/requests?method=PUT&limit=2${cursor && `&cursor=${cursor}`}`;
    const { status, body } = await service.admin.get(path);
    expect([status, body.has_more]).toEqual([200, body.next_cursor !== null]);
    found.push(...body.data.map((call: { request_id: string }) => call.request_id));
    cursor = body.next_cursor as string | null;
  }
  expect(found.sort()).toEqual(['req4999', 'req5000', 'req7']);
  expect(pages).toBe(3);
});
