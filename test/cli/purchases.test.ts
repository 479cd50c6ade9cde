import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { NodeChild } from '../harness/child-process.js';
import { eventually, startTestService, type TestPartner, type TestService } from '../harness/index.js';
import { orderEnded, placeOrder } from '../harness/order-steps.js';
import { type CallHolder, type Fate, startCallHolder } from './call-holder.js';
import { CliUser, jsonLines } from './cli-process.js';

const KEY = /[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/;
const PLACE = ['orders', 'place', '-p', 'pkg_fr_1gb_7d'];

let service: TestService;
let partner: TestPartner;
let user: CliUser;
let holder: CallHolder | undefined;
let child: NodeChild | undefined;

beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.stop());

beforeEach(async () => {
  partner = await service.createPartner();
  user = new CliUser({ ESIM_API_KEY: partner.sandboxKey, ESIM_BASE_URL: service.process.api?.url ?? '' });
});
afterEach(async () => {
  await child?.kill();
  await holder?.close();
  user.remove();
});

/** Applies this fate to responses of calls with this prefix. All others pass. */
async function through(fate: Fate, call: string): Promise<Record<string, string>> {
  holder = await startCallHolder(service.process.api?.url ?? '', (made) =>
    made.startsWith(call) ? fate : 'answered',
  );
  return { ESIM_BASE_URL: holder.url };
}

/** Starts the command, and waits until the service has processed its call and the response is held back. */
async function untilHeld(call: string, args: readonly string[]): Promise<NodeChild> {
  const env = await through('held', call);
  const launched = user.launch(args, env);
  child = launched;
  await eventually(`${call} is held`, () => holder!.kept.length > 0);
  return launched;
}

const keyIn = (text: string): string => KEY.exec(text)?.[0] ?? 'no key';

async function orderIds(): Promise<string[]> {
  const { data } = (await partner.sandbox.get('/v1/orders')).body;
  return data.map(({ id }: { id: string }) => id);
}

/** Repeats the purchase as the program instructed, and checks that it was one purchase. */
async function expectBoughtOnce(key: string): Promise<void> {
  const again = await user.run([...PLACE, '--idempotency-key', key, '--json']);
  expect(again).toMatchObject({ code: 0 });
  expect(await orderIds()).toEqual([jsonLines(again.stdout)[0]!['id']]);
}

describe('resume instructions of esim orders place', () => {
  it('names the idempotency key when Ctrl-C comes before the response', async () => {
    const placing = await untilHeld('POST /v1/orders', [...PLACE, '--json']);
    placing.signal('SIGINT');
    expect(await placing.exited()).toBe(1);
    const [said] = jsonLines(placing.stdout);
    expect(said).toMatchObject({ error: 'interrupted', idempotency_key: keyIn(placing.stderr) });
    expect(placing.stderr).toContain('may have been placed');
    await expectBoughtOnce(said!['idempotency_key'] as string);
  });

  it('prints the idempotency key before the call is sent, because a kill leaves no time to print', async () => {
    const placing = await untilHeld('POST /v1/orders', PLACE);
    await placing.kill();
    await expectBoughtOnce(keyIn(placing.stderr));
  });

  it('names the idempotency key when one attempt was cut off and the next could not connect', async () => {
    const env = await through('cut, then gone', 'POST /v1/orders');
    const placed = await user.run([...PLACE, '--json'], { env });
    expect(placed.code).toBe(5);
    const [said] = jsonLines(placed.stdout);
    expect(said).toMatchObject({ exit_code: 5, idempotency_key: keyIn(placed.stderr) });
    expect(placed.stderr).toContain('may have been placed');
    await expectBoughtOnce(said!['idempotency_key'] as string);
  });

  it('names the order when Ctrl-C comes while it waits', async () => {
    const waiting = await untilHeld('GET /v1/orders/', [...PLACE, '--wait', '--json']);
    const [id] = await orderIds();
    expect(waiting.stderr).toContain(id);
    waiting.signal('SIGTERM');
    expect(await waiting.exited()).toBe(1);
    expect(jsonLines(waiting.stdout)).toEqual([
      { error: 'interrupted', exit_code: 1, order_id: id, idempotency_key: keyIn(waiting.stderr) },
    ]);
    expect(waiting.stderr).toContain(`esim orders get ${id}`);
  });

  it('names the order when the service becomes unreachable while the command waits', async () => {
    const env = await through('cut', 'GET /v1/orders/');
    const waited = await user.run([...PLACE, '--wait', '--json'], { env });
    const [id] = await orderIds();
    expect(waited.code).toBe(5);
    expect(jsonLines(waited.stdout)).toMatchObject([{ exit_code: 5, order_id: id }]);
    expect(waited.stderr).toContain(`esim orders get ${id}`);
  });

  it('prints only the refusal when nothing can have been bought', async () => {
    const refused = await user.run(['orders', 'place', '-p', 'pkg_none', '--json']);
    expect(refused).toMatchObject({ code: 4, stderr: expect.not.stringContaining('may have been placed') });
    expect(jsonLines(refused.stdout)[0]).not.toHaveProperty('idempotency_key');
    expect(await orderIds()).toEqual([]);
  });
});

describe('esim topups', () => {
  let esimId: string;
  let place: string[];
  beforeEach(async () => {
    const placed = await placeOrder(partner.sandbox, { package_id: 'pkg_fr_1gb_7d' });
    esimId = (await orderEnded(partner.sandbox, placed['id']))['esims'][0].esim_id as string;
    place = ['topups', 'place', '-e', esimId, '-p', 'pkg_fr_topup_1gb_7d'];
  });

  async function topupIds(): Promise<string[]> {
    const { data } = (await partner.sandbox.get('/v1/topups')).body;
    return data.map(({ id }: { id: string }) => id);
  }

  it('lists matching top-ups for the eSIM, buys one, waits, and shows it', async () => {
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

  it('exits with a code when the top-up fails', async () => {
    const placed = await user.run(['topups', 'place', '-e', esimId, '-p', 'pkg_test_topup_fail', '--wait']);
    expect(placed).toMatchObject({ code: 1, stdout: expect.stringContaining('package_unavailable') });
  });

  it('prints the idempotency key before the call is sent, and buys only once with it', async () => {
    const placing = await untilHeld('POST /v1/topups', place);
    await placing.kill();
    const key = keyIn(placing.stderr);
    const again = await user.run([...place, '--idempotency-key', key, '--json']);
    expect(again).toMatchObject({ code: 0 });
    expect(await topupIds()).toEqual([jsonLines(again.stdout)[0]!['id']]);
  });

  it('names the pending top-up when Ctrl-C comes while it waits', async () => {
    const waiting = await untilHeld('GET /v1/topups/', [...place, '--wait', '--json']);
    const [id = ''] = await topupIds();
    waiting.signal('SIGINT');
    expect(await waiting.exited()).toBe(1);
    expect(jsonLines(waiting.stdout)).toEqual([
      { error: 'interrupted', exit_code: 1, topup_id: id, idempotency_key: keyIn(waiting.stderr) },
    ]);
    expect(waiting.stderr).toContain(`esim topups get ${id}`);
  });
});

describe('esim refunds', () => {
  it('requests a refund of an eSIM, lists, shows and cancels it', async () => {
    const placed = await placeOrder(partner.sandbox, { package_id: 'pkg_fr_1gb_7d' });
    const esimId = (await orderEnded(partner.sandbox, placed['id']))['esims'][0].esim_id as string;
    const create = ['refunds', 'create', esimId, '--reason', 'duplicate', '--details', 'Bought twice.'];
    const created = await user.run([...create, '--json']);
    const [{ id }] = jsonLines(created.stdout) as [{ id: string }];
    expect(created).toMatchObject({ code: 0 });
    const again = await user.run(create);
    expect(again).toMatchObject({ code: 4, stderr: expect.stringContaining('is pending') });
    const listed = await user.run(['refunds', 'list', '--esim', esimId, '--status', 'pending']);
    expect(listed).toMatchObject({ code: 0, stdout: expect.stringContaining(id) });
    const shown = await user.run(['refunds', 'get', id]);
    expect(shown.stdout).toBe(`${id}  pending\n  for ${esimId}: duplicate\n  details: Bought twice.\n`);
    const canceled = await user.run(['refunds', 'cancel', id]);
    expect(canceled).toMatchObject({ code: 0, stdout: expect.stringContaining('canceled') });
  });

  it.each([
    [['refunds', 'create'], 'the eSIM is missing'],
    [['refunds', 'create', 'esim_1', '--reason', 'bored'], 'not_working, wrong_device, duplicate, other'],
    [['refunds', 'get'], '`esim refunds list`'],
    [['refunds', 'cancel'], '`esim refunds list`'],
    [['refunds', 'get', 'rfr_01M7SJ8EH4V8DA1TCQEKT9GHZ7'], '`esim refunds list` lists what it can see'],
  ])('explains what is wrong with esim %j', async (args, says) => {
    const { code, stderr } = await user.run(args);
    expect([code === 0, stderr]).toEqual([false, expect.stringContaining(says)]);
  });
});
