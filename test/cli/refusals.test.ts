import { afterAll, beforeAll, expect, it } from 'vitest';
import { hintFor } from '../../cli/src/refusal-hints.js';
import { EsimApiError, type ErrorCode } from '../../sdk/src/index.js';
import { freePort } from '../../chaos/free-port.js';
import { startTestService, type TestPartner, type TestService } from '../harness/index.js';
import { orderEnded, placeOrder } from '../harness/order-steps.js';
import { CliUser, type Finished } from './cli-process.js';

let service: TestService;
let partner: TestPartner;
let user: CliUser;
let esimId: string;

beforeAll(async () => {
  service = await startTestService();
  partner = await service.createPartner();
  user = new CliUser({ ESIM_API_KEY: partner.sandboxKey, ESIM_BASE_URL: service.process.api?.url ?? '' });
  const placed = await placeOrder(partner.sandbox, { package_id: 'pkg_fr_1gb_7d', reference: 'taken' });
  esimId = (await orderEnded(partner.sandbox, placed['id']))['esims'][0].esim_id as string;
});
afterAll(async () => {
  user.remove();
  await service.stop();
});

/** The lines below the error, without the request id. */
function hintsOf({ stderr }: Finished): string[] {
  const [, ...below] = stderr.slice(stderr.indexOf('error: ')).trimEnd().split('\n');
  return below.filter((line) => !line.startsWith('  request req_'));
}

const place = (...args: string[]): string[] => ['orders', 'place', '-p', 'pkg_fr_1gb_7d', ...args];
const topUp = (packageId: string, ...args: string[]): string[] => [
  ...['topups', 'place', '-e', esimId, '-p', packageId],
  ...args,
];

it.each([
  ['an unknown package', 'not_found', () => ['orders', 'place', '-p', 'pkg_none'], 'esim catalog'],
  [
    'a reference that is already taken',
    'reference_taken',
    () => place('--reference', 'taken'),
    'esim orders list --reference',
  ],
  ['an unknown top-up package', 'not_found', () => topUp('pkg_none'), 'esim topups packages'],
  [
    'a top-up that does not fit',
    'topup_not_supported',
    () => topUp('pkg_gr_topup_1gb_7d'),
    'esim topups packages',
  ],
])('explains in one line how to fix %s', async (_what, code, args, says) => {
  const refused = await user.run(args());
  expect(refused.code).toBe(4);
  expect(refused.stderr).toContain(`error: ${code}: `);
  expect(hintsOf(refused)).toEqual([expect.stringContaining(says)]);
});

it('explains how to fix an idempotency key that belongs to another purchase', async () => {
  const key = ['--idempotency-key', 'refusals-key-1'];
  expect(await user.run(place(...key))).toMatchObject({ code: 0 });
  const refused = await user.run(place('-q', '2', ...key));
  expect(refused.stderr).toContain('error: idempotency_key_reused: ');
  expect(hintsOf(refused)).toEqual([expect.stringContaining('--idempotency-key')]);
});

it('points to top-ups for a reference that a top-up has taken', async () => {
  const again = topUp('pkg_fr_topup_1gb_7d', '--reference', 'longer');
  expect(await user.run(again)).toMatchObject({ code: 0 });
  expect(hintsOf(await user.run(again))).toEqual([expect.stringContaining('/v1/topups?reference=')]);
});

it('explains how to fix a key that is not accepted', async () => {
  const env = { ESIM_API_KEY: `svc_sk_test_${'x'.repeat(32)}` };
  const refused = await user.run(['orders', 'list'], { env });
  expect(refused).toMatchObject({ code: 3 });
  const [hint, ...more] = hintsOf(refused);
  expect(more).toEqual([]);
  for (const words of ['esim login', 'ESIM_API_KEY', '--base-url']) expect(hint).toContain(words);
});

it('names the missing id, the mode of the key, and the command that lists valid ids', async () => {
  const refused = await user.run(['orders', 'get', 'ord_01M7SJ8EH4V8DA1TCQEKT9GHZ7']);
  expect(refused.stderr).toContain('error: not_found: ');
  expect(hintsOf(refused)).toEqual([
    'This Sandbox key cannot see ord_01M7SJ8EH4V8DA1TCQEKT9GHZ7. A Live object needs a Live key (--live). `esim orders list` lists what it can see.',
  ]);
  const topup = await user.run(['topups', 'get', 'top_01M7SJ8EH4V8DA1TCQEKT9GHZ7']);
  expect(hintsOf(topup)).toEqual([expect.stringContaining('cannot see top_01M7SJ8EH4V8DA1TCQEKT9GHZ7.')]);
});

it('names the URL of an unreachable service, the cause, and the next step', async () => {
  const place = `127.0.0.1:${await freePort()}`;
  const away = await user.run(['orders', 'list', '--base-url', `http://${place}`]);
  expect(away).toMatchObject({ code: 5, stdout: '' });
  expect(away.stderr).toBe(
    `error: GET http://${place}/v1/orders: the connection failed: connect ECONNREFUSED ${place}.\nRun \`esim doctor\` to find the cause.\n`,
  );
});

const refusedCall = (code: ErrorCode, mode: 'sandbox' | 'live', path: string): EsimApiError =>
  new EsimApiError(
    { code, status: 409, detail: '', errors: [], requestId: 'req_1', retryable: false },
    {
      method: 'POST',
      baseUrl: 'http://localhost:3000',
      path,
      mode,
      idempotencyKey: 'key',
      tries: 1,
      mayHaveArrived: false,
    },
  );

it.each<[ErrorCode, string, string]>([
  ['not_found', '/v1/orders', '`esim catalog --live`'],
  ['not_found', '/v1/topups', '`esim topups packages <esim> --live`'],
  ['reference_taken', '/v1/orders', '`esim orders list --reference <text> --live`'],
  ['price_changed', '/v1/orders', '`esim catalog --live`'],
  ['package_unavailable', '/v1/orders', '`esim catalog --live`'],
])('names the Live commands for %s of a Live call to %s', (code, path, says) => {
  expect(hintFor(refusedCall(code, 'live', path))).toContain(says);
  expect(hintFor(refusedCall(code, 'sandbox', path))).not.toContain('--live');
});

it.each<ErrorCode>([
  'insufficient_balance',
  'price_changed',
  'esim_not_ready',
  'esim_expired',
  'package_unavailable',
])('prints one line for %s', (code) => {
  expect(hintFor(refusedCall(code, 'sandbox', '/v1/topups'))).toMatch(/^[^\n]*`esim [^\n]*$/);
});
