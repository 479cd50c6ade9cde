import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { eventually, startTestService, type TestPartner, type TestService } from '../harness/index.js';
import { orderEnded, placeOrder } from '../harness/order-steps.js';
import type { NodeChild } from '../harness/child-process.js';
import { type CallHolder, startCallHolder } from './call-holder.js';
import { CliUser, jsonLines } from './cli-process.js';

const KEY = /^idempotency key ([0-9a-f-]{36})$/m;

let service: TestService;
let partner: TestPartner;
let user: CliUser;
let esimId: string;
let place: string[];
let holder: CallHolder | undefined;
let child: NodeChild | undefined;

beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.stop());

beforeEach(async () => {
  partner = await service.createPartner();
  user = new CliUser({ ESIM_API_KEY: partner.sandboxKey, ESIM_BASE_URL: service.process.api?.url ?? '' });
  const placed = await placeOrder(partner.sandbox, { package_id: 'pkg_fr_1gb_7d' });
  esimId = (await orderEnded(partner.sandbox, placed['id']))['esims'][0].esim_id as string;
  place = ['topups', 'place', '-e', esimId, '-p', 'pkg_fr_topup_1gb_7d'];
});
afterEach(async () => {
  await child?.kill();
  await holder?.close();
  user.remove();
});

async function topupIds(): Promise<string[]> {
  const { data } = (await partner.sandbox.get('/v1/topups')).body;
  return data.map(({ id }: { id: string }) => id);
}

/** Starts to buy through something that keeps back the answers to such calls; waits until one is kept. */
async function untilHeld(call: string, args: readonly string[]): Promise<NodeChild> {
  holder = await startCallHolder(service.process.api?.url ?? '', (made) =>
    made.startsWith(call) ? 'held' : 'answered',
  );
  const launched = user.launch(args, { ESIM_BASE_URL: holder.url });
  child = launched;
  await eventually(`${call} is held`, () => holder!.kept.length > 0);
  return launched;
}

it('lists what fits the eSIM, buys it, waits, and shows it', async () => {
  const fitting = await user.run(['topups', 'packages', esimId, '--json']);
  const ids = jsonLines(fitting.stdout).map(({ id }) => id);
  const { data } = (await partner.sandbox.get(`/v1/esims/${esimId}/topup-packages?limit=100`)).body;
  expect(ids).toEqual(data.map(({ id }: { id: string }) => id));
  expect(ids).toContain('pkg_fr_topup_1gb_7d');
  const placed = await user.run([...place, '--wait', '--reference', 'longer-1']);
  expect(placed).toMatchObject({ code: 0, stdout: expect.stringContaining('completed') });
  expect(placed.stdout).toContain(`for ${esimId}: 1 GB, 7 days`);
  const [id = ''] = await topupIds();
  const [shown] = jsonLines((await user.run(['topups', 'get', id, '--json'])).stdout);
  expect(shown).toMatchObject({ id, status: 'completed', reference: 'longer-1' });
});

it('ends with a code when the top-up fails', async () => {
  const placed = await user.run(['topups', 'place', '-e', esimId, '-p', 'pkg_test_topup_fail', '--wait']);
  expect(placed).toMatchObject({ code: 1, stdout: expect.stringContaining('package_unavailable') });
});

it('says the idempotency key before the call leaves, and buys nothing twice with it', async () => {
  const placing = await untilHeld('POST /v1/topups', place);
  await placing.kill();
  const key = KEY.exec(placing.stderr)?.[1] ?? 'no key';
  const again = await user.run([...place, '--idempotency-key', key, '--json']);
  expect(again).toMatchObject({ code: 0 });
  expect(await topupIds()).toEqual([jsonLines(again.stdout)[0]!['id']]);
});

it('says which top-up goes on, when Ctrl-C comes while it waits', async () => {
  const waiting = await untilHeld('GET /v1/topups/', [...place, '--wait', '--json']);
  const [id = ''] = await topupIds();
  waiting.signal('SIGINT');
  expect(await waiting.exited()).toBe(1);
  expect(jsonLines(waiting.stdout)).toEqual([
    { error: 'interrupted', exit_code: 1, topup_id: id, idempotency_key: KEY.exec(waiting.stderr)?.[1] },
  ]);
  expect(waiting.stderr).toContain(`esim topups get ${id}`);
});
