import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { startTestService, type TestPartner, type TestService } from '../harness/index.js';
import { issueEsim, type Json } from '../harness/order-steps.js';

let service: TestService;
let partner: TestPartner;

beforeAll(async () => {
  service = await startTestService();
});
beforeEach(async () => {
  partner = await service.createPartner();
});
afterAll(() => service.stop());

const EVERY_EVENT =
  'the feed%s has every event once and in order, whatever the size of the pages, and goes on where it ended (D39)';

it.each(['', '&type=order.issued'])(EVERY_EVENT, async (filter) => {
  const issued = [];
  for (let i = 0; i < 3; i++) issued.push(await issueEsim(partner.sandbox, 'pkg_fr_1gb_7d'));
  let cursor = '';
  const read = async (): Promise<string[]> => {
    const page = (await partner.sandbox.get(`/v1/events?limit=1${filter}${cursor}`)).body;
    if (page.next_cursor) cursor = `&cursor=${page.next_cursor}`;
    return (page.data as Json[]).map(({ data }) => data.esims[0].esim_id as string);
  };
  const seen: string[] = [];
  for (let pages = 0; pages < 5; pages++) seen.push(...(await read()));
  expect(seen).toEqual(issued);
  const next = await issueEsim(partner.sandbox, 'pkg_fr_1gb_7d');
  expect(await read()).toEqual([next]);
});
