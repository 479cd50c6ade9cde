import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  eventually,
  startReceiver,
  startTestService,
  type TestPartner,
  type TestReceiver,
  type TestService,
} from '../harness/index.js';
import type { NodeChild } from '../harness/child-process.js';
import { CliUser, jsonLines } from './cli-process.js';

let service: TestService;
let partner: TestPartner;
let receiver: TestReceiver;
let user: CliUser;
let running: NodeChild[] = [];

beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.stop());

beforeEach(async () => {
  partner = await service.createPartner();
  receiver = await startReceiver();
  user = new CliUser({ ESIM_API_KEY: partner.sandboxKey, ESIM_BASE_URL: service.process.api?.url ?? '' });
});
afterEach(async () => {
  await Promise.all(running.map((child) => child.kill()));
  running = [];
  await receiver.close();
  user.remove();
});

const listen = (...args: string[]): Promise<NodeChild> => user.listen(receiver.url, args, running);

const fail = (): ReturnType<TestPartner['sandbox']['post']> =>
  partner.sandbox.post('/v1/orders', { package_id: 'pkg_test_out_of_stock' });

const attemptsOf = (child: NodeChild): Record<string, unknown>[] =>
  jsonLines(child.stdout).filter(({ type }) => type === 'attempt');

async function received(count: number): Promise<void> {
  await eventually(`${count} events at the local server`, () => receiver.received.length >= count);
}

describe('esim listen at a server that does not take events', () => {
  it('tries again after five seconds at most, for it is being repaired', async () => {
    receiver.answer = (_nth, _webhook, response) => void response.writeHead(500).end();
    const child = await listen();
    await fail();
    await eventually('four attempts', () => attemptsOf(child).length >= 4);
    const pauses = attemptsOf(child).map(({ retry_ms }) => retry_ms);
    expect(pauses.slice(0, 4)).toEqual([1_000, 2_000, 4_000, 5_000]);
    expect(child.stderr).not.toContain('--print-secret');
  });

  it.each([400, 401, 403])('says once where its secret comes from, when it answers %i', async (status) => {
    receiver.answer = (_nth, _webhook, response) => void response.writeHead(status).end();
    const child = await listen('--on-failure', 'skip');
    await fail();
    await fail();
    await eventually('two attempts', () => attemptsOf(child).length >= 2);
    expect(child.stderr.match(/if it refused the signature/g)).toHaveLength(1);
    expect(child.stderr).toContain(
      'its secret must be what "esim listen --print-secret" prints; see esim verify',
    );
  });

  it('forwards only the chosen types, and skips what the server refuses when it is told to', async () => {
    receiver.answer = (_nth, _webhook, response) => void response.writeHead(404).end();
    await listen('--types', 'order.failed', '--on-failure', 'skip');
    await partner.sandbox.post('/v1/orders', { package_id: 'pkg_fr_1gb_7d' });
    await eventually(
      'an event of another type',
      async () => (await partner.sandbox.get('/v1/events')).body.data.length > 0,
    );
    const order = await fail();
    await received(1);
    await fail();
    await received(2);
    expect(receiver.received.map(({ headers }) => headers['x-service-event'])).toEqual([
      'order.failed',
      'order.failed',
    ]);
    expect(receiver.received[0]!.body).toContain(order.body.data.id);
  });
});
