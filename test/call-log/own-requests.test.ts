import { afterAll, beforeAll, expect, it } from 'vitest';
import { expectProblem } from '../harness/expect-problem.js';
import {
  type HttpClient,
  loggedCall,
  startTestService,
  type TestPartner,
  type TestService,
} from '../harness/index.js';

let service: TestService;
let partner: TestPartner;
let live: HttpClient;
let other: TestPartner;

beforeAll(async () => {
  service = await startTestService();
  [partner, other] = [await service.createPartner(), await service.createPartner()];
  live = service.partnerApi(await service.createKey(partner.id, 'live'));
});
afterAll(() => service.stop());

/** Makes a call and waits until it is logged. */
async function logged(api: HttpClient, path: string): Promise<string> {
  return (await loggedCall(service.admin, await api.get(path)))['request_id'] as string;
}

async function idsOf(api: HttpClient, query = ''): Promise<string[]> {
  const { status, body } = await api.get(`/v1/requests${query}`);
  expect(status).toBe(200);
  return body.data.map(({ request_id: id }: { request_id: string }) => id);
}

it("lists the calls of the key's partner and mode, newest first, by page and filter, without calls to the log itself", async () => {
  const first = await logged(partner.sandbox, '/v1/orders');
  const second = await logged(partner.sandbox, '/v1/orders/ord_none');
  const ofLive = await logged(live, '/v1/orders');
  const ofOther = await logged(other.sandbox, '/v1/orders');
  expect(await idsOf(partner.sandbox)).toEqual([second, first]);
  await logged(partner.sandbox, '/v1/requests');
  expect(await idsOf(partner.sandbox)).toEqual([second, first]);
  expect(await idsOf(live)).toEqual([ofLive]);
  expect(await idsOf(other.sandbox)).toEqual([ofOther]);
  expect(await idsOf(partner.sandbox, '?status=200')).toEqual([first]);
  expect(await idsOf(partner.sandbox, `?request_id=${ofLive}`)).toEqual([]);
  const page = (await partner.sandbox.get('/v1/requests?limit=1')).body;
  expect(page).toMatchObject({ data: [{ request_id: second }], has_more: true });
  expect(await idsOf(partner.sandbox, `?limit=1&cursor=${page.next_cursor as string}`)).toEqual([first]);
});

it('shows the same fields of a call as the portal, and no query, body or key', async () => {
  const id = await logged(partner.sandbox, '/v1/orders?reference=booking-4711');
  const { body, text } = await partner.sandbox.get(`/v1/requests?request_id=${id}`);
  expect(body.data).toEqual([(await service.admin.get(`/internal/v1/requests/${id}`)).body.data]);
  expect(text).not.toContain('booking-4711');
  expect(text).not.toContain(partner.sandboxKey);
});

it('requires a key, and refuses an unknown filter', async () => {
  expect((await service.partnerApi(null).get('/v1/requests')).status).toBe(401);
  expectProblem(await partner.sandbox.get('/v1/requests?mode=live'), 400, 'validation_failed');
});
