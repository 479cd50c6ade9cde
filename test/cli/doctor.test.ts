import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { nodeFinding } from '../../cli/src/doctor/node-version.js';
import { verifyWebhookSignature } from '../../src/webhooks/index.js';
import {
  type ReceivedWebhook,
  startReceiver,
  startTestService,
  type TestReceiver,
  type TestService,
} from '../harness/index.js';
import { freePort } from '../../chaos/free-port.js';
import { CliUser, type Finished, jsonLines } from './cli-process.js';

const BEHIND_REACH = ['name', 'tls', 'clock', 'key'];

let service: TestService;
let baseUrl: string;
let receiver: TestReceiver;
let user: CliUser;

beforeAll(async () => {
  service = await startTestService();
  baseUrl = service.process.api?.url ?? '';
  const { sandboxKey } = await service.createPartner('Test Travel');
  user = new CliUser({ ESIM_API_KEY: sandboxKey, ESIM_BASE_URL: baseUrl });
});
afterAll(async () => {
  user.remove();
  await service.stop();
});
beforeEach(async () => {
  receiver = await startReceiver();
});
afterEach(() => receiver.close());

interface Check {
  readonly check: string;
  readonly ok: boolean;
  readonly status: string;
  readonly detail: string;
}

const checksOf = ({ stdout }: Finished): Check[] => jsonLines(stdout) as unknown as Check[];

async function checks(args: readonly string[] = [], env: Record<string, string> = {}): Promise<Check[]> {
  return checksOf(await user.run(['doctor', '--json', ...args], { env }));
}

async function check(name: string, args?: readonly string[], env?: Record<string, string>): Promise<Check> {
  const found = (await checks(args, env)).find((each) => each.check === name);
  if (found === undefined) throw new Error(`doctor has no check ${name}`);
  return found;
}

describe('esim doctor for the API connection', () => {
  it('reaches the API, and reports the URL and what responds there', async () => {
    const well = await user.run(['doctor', '--json']);
    expect(well.code).toBe(0);
    expect(checksOf(well).map(({ check: name, ok, status }) => [name, ok, status])).toEqual(
      ['reach', ...BEHIND_REACH, 'node'].map((name) => [name, true, 'ok']),
    );
    expect(checksOf(well)[0]!.detail).toBe(baseUrl);
    expect((await user.run(['doctor'])).stdout).toContain(baseUrl);
  });

  it('reports first that nothing listens there, and skips the checks that depend on it', async () => {
    const nobody = `http://localhost:${await freePort()}`;
    const ill = await user.run(['doctor', '--base-url', nobody, '--json']);
    expect(ill.code).toBe(1);
    const [reach, ...behind] = checksOf(ill);
    expect(reach).toMatchObject({ check: 'reach', ok: false, status: 'bad' });
    expect(reach!.detail).toContain(
      `${nobody}: nothing is listening there (ECONNREFUSED). Check the base URL:`,
    );
    expect(behind.slice(0, 4)).toEqual(
      BEHIND_REACH.map((name) => ({ check: name, ok: false, status: 'not_checked', detail: 'not checked' })),
    );
    const { stdout } = await user.run(['doctor', '--base-url', nobody]);
    expect(stdout).toMatch(/^BAD {3}reach {9}http:\/\/localhost:\d+: nothing is listening/);
    expect(stdout).not.toContain('fetch failed');
  });

  it('detects another program at the port', async () => {
    const found = await check('reach', ['--base-url', new URL(receiver.url).origin]);
    expect(found).toMatchObject({ status: 'bad', detail: expect.stringContaining('is not this API') });
  });

  it('explains how to fix a missing, malformed or unknown key', async () => {
    for (const key of ['', 'hello', `svc_sk_test_${'x'.repeat(32)}`]) {
      const found = await check('key', [], { ESIM_API_KEY: key });
      expect(found).toMatchObject({ ok: false, status: 'bad' });
      expect(found.detail).toContain('esim login');
      expect(found.detail).toContain('ESIM_API_KEY');
      if (key !== '') expect(found.detail).not.toContain(key);
    }
    const unknown = await check('key', [], { ESIM_API_KEY: `svc_sk_test_${'x'.repeat(32)}` });
    expect(unknown.detail).toContain(baseUrl);
    expect(unknown.detail).toContain('belongs to this API');
  });
});

it.each([
  ['v20.19.0', 'bad', '22.19'],
  ['v22.18.0', 'bad', '22.19'],
  ['v22.19.0', 'ok', ''],
  ['v24.0.0', 'ok', ''],
])('compares Node.js %s with the version that the package requires: %s', (version, status, wanted) => {
  const found = nodeFinding(version, '>=22.19');
  expect(found).toMatchObject({ check: 'node', status, detail: expect.stringContaining(version) });
  expect(found.detail).toContain(wanted);
});

describe('esim doctor for the local server', () => {
  const isSigned = ({ headers, body }: ReceivedWebhook, secret: string): boolean =>
    verifyWebhookSignature({
      header: headers['x-service-signature'] as string,
      body,
      secret,
      toleranceSeconds: 600,
    });

  /** Runs doctor against a server with one status for signed events and another for unsigned ones. */
  async function answering(signed: number, unsigned: number): Promise<Check> {
    const secret = (await user.run(['listen', '--print-secret'])).stdout.trim();
    receiver.answer = (_nth, webhook, response) =>
      void response.writeHead(isSigned(webhook, secret) ? signed : unsigned).end();
    return check('local server', ['--forward-to', receiver.url]);
  }

  it('passes a server that accepts signed events and refuses others', async () => {
    const found = await answering(204, 401);
    expect(found).toMatchObject({ ok: true, status: 'ok', signed: '204', wrongly_signed: '401' });
    expect(found.detail).toContain('returned 204 to a signed test event and 401 to a wrongly signed one');
    const events = receiver.received.map(({ body }) => JSON.parse(body) as { id: string; type: string });
    expect(events.map(({ type }) => type)).toEqual(['webhook.test', 'webhook.test']);
    expect(new Set(events.map(({ id }) => id)).size).toBe(2);
  });

  it.each([
    ['refuses everything', 400, 400, 'bad', 'give it the secret that `esim listen --print-secret` prints'],
    ['accepts everything', 200, 200, 'bad', 'it accepts unsigned requests'],
    ['accepts only wrong signatures', 401, 200, 'bad', 'it accepts unsigned requests'],
    ['has another path', 404, 404, 'bad', 'check that the path is correct'],
    ['fails', 500, 401, 'bad', '2xx'],
    ['redirects', 301, 301, 'bad', '2xx'],
    ['fails on a wrong signature', 200, 500, 'warn', '4xx'],
  ] as const)('reports a server that %s', async (_what, signed, unsigned, status, says) => {
    const found = await answering(signed, unsigned);
    expect(found).toMatchObject({ status, detail: expect.stringContaining(says) });
  });

  it('reports a server that does not listen', async () => {
    const found = await check('local server', ['--forward-to', '127.0.0.1:1']);
    expect(found).toMatchObject({ status: 'bad', detail: expect.stringContaining('ECONNREFUSED') });
  });
});
