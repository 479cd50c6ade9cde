import { afterAll, beforeAll, expect, it } from 'vitest';
import { startTestService, type TestPartner, type TestService } from '../harness/index.js';
import { issueEsim, type Json } from '../harness/order-steps.js';

let service: TestService;
let partner: TestPartner;

beforeAll(async () => {
  service = await startTestService();
  partner = await service.createPartner();
});

afterAll(() => service.stop());

it('the feed has every event once and in order, whatever the size of the pages, and goes on where it ended (D39)', async () => {
  const issued = [];
  for (let i = 0; i < 3; i++) issued.push(await issueEsim(partner.sandbox, 'pkg_fr_1gb_7d'));
  let cursor = '';
  const read = async (): Promise<string[]> => {
    const page = (await partner.sandbox.get(`/v1/events?limit=1${cursor}`)).body;
    if (page.next_cursor) cursor = `&cursor=${page.next_cursor}`;
    return (page.data as Json[]).map(({ data }) => data.esims[0].esim_id as string);
  };
  const seen: string[] = [];
  for (let pages = 0; pages < 5; pages++) seen.push(...(await read()));
  expect(seen).toEqual(issued);
  const next = await issueEsim(partner.sandbox, 'pkg_fr_1gb_7d');
  expect(await read()).toEqual([next]);
});
