import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import {
  eventually,
  startReceiver,
  startTestService,
  type TestPartner,
  type TestReceiver,
  type TestService,
} from '../harness/index.js';
import { CliUser, type Finished, jsonLines, PROGRAM, runProgram } from './cli-process.js';

/** `wait` makes sure that the pipe's reader has exited before the program starts. */
const INTO_NOBODY = 'exec 3> >(:); wait $!; exec "$0" "$@" >&3 3>&-';
/** The reader reads one line, closes the pipe and then reports it. */
const ONE_LINE = 'exec 3> >(head -1 >&2; exec <&-; echo reader is gone >&2); exec "$0" "$@" >&3 3>&-';

let service: TestService;
let partner: TestPartner;
let receiver: TestReceiver;
let user: CliUser;

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
  await receiver.close();
  user.remove();
});

function piped(script: string, ...args: string[]): Promise<Finished> {
  return runProgram('bash', ['-c', script, process.execPath, PROGRAM, ...args], { env: user.env });
}

it.each([
  ['catalog --json', ['catalog', '--region', 'europe', '--json']],
  ['events list', ['events', 'list']],
  ['help', ['help']],
  ['doctor', ['doctor', '--json']],
  ['listen, which never ends', ['listen', '-f', 'localhost:9/hook']],
])('exits quietly when nobody reads stdout: %s', async (_name, args) => {
  await partner.sandbox.post('/v1/orders', { package_id: 'pkg_test_out_of_stock' });
  await eventually('an event', async () => (await partner.sandbox.get('/v1/events')).body.data.length > 0);
  const finished = await piped(INTO_NOBODY, ...args);
  expect(finished.code).toBe(0);
  expect(finished.stderr).not.toMatch(/EPIPE|error|^\s+at /m);
});

it('completes a purchase when nobody reads, and prints the key to stderr', async () => {
  const placed = await piped(INTO_NOBODY, 'orders', 'place', '-p', 'pkg_fr_1gb_7d', '--wait', '--json');
  expect(placed.code).toBe(0);
  expect(placed.stderr).toMatch(/^idempotency key \S+\nord_\w+ is \w+\n$/);
  const [order] = (await partner.sandbox.get('/v1/orders')).body.data;
  expect(order).toMatchObject({ status: 'issued' });
});

it('does not forward an accepted event again after the reader of listen has gone', async () => {
  const listening = piped(ONE_LINE, 'listen', '-f', receiver.url, '--since', 'beginning', '--json');
  const placed: string[] = [];
  const failed = async (): Promise<void> => {
    const answer = await partner.sandbox.post('/v1/orders', { package_id: 'pkg_test_out_of_stock' });
    placed.push(answer.body.data.id as string);
  };
  await failed();
  // The reader gets the ready line. Then the report of the first attempt fails, or the next one if the reader is slow.
  let ended = false;
  void listening.finally(() => (ended = true));
  await eventually('listen ends', async () => {
    if (!ended) await failed();
    return ended;
  });
  const finished = await listening;
  expect(finished).toMatchObject({ code: 0, stderr: expect.stringContaining('reader is gone') });
  const taken = receiver.received.length;
  expect(taken).toBeGreaterThan(0);
  const child = user.launch(['listen', '-f', receiver.url, '--json']);
  await failed();
  // The orders may end in any sequence.
  await eventually('an event of each', () =>
    placed.every((id) => receiver.received.some(({ body }) => body.includes(id))),
  );
  await child.kill();
  const ids = receiver.received.map(({ body }) => jsonLines(body)[0]!['id']);
  expect(new Set(ids).size).toBe(ids.length);
});
