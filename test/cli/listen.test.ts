import { readdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { newId } from '../../src/common/ids.js';
import { verifyWebhookSignature } from '../../src/webhooks/index.js';
import {
  eventually,
  type ReceivedWebhook,
  startReceiver,
  startTestService,
  type TestPartner,
  type TestReceiver,
  type TestService,
} from '../harness/index.js';
import type { NodeChild } from '../harness/child-process.js';
import { freePort } from '../../chaos/free-port.js';
import { type Fate, startCallHolder } from './call-holder.js';
import { CliUser, jsonLines } from './cli-process.js';

const MANY = 1_000;

let service: TestService;
let partner: TestPartner;
let receiver: TestReceiver;
let user: CliUser;
let running: NodeChild[] = [];

beforeAll(async () => {
  // Reserve a port that no other program gets while the service is down.
  service = await startTestService({ env: { PORT: String(await freePort()) } });
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

/** Records events like the service, and returns their ids in feed order. */
async function makeEvents(count: number): Promise<string[]> {
  const envelopes = Array.from({ length: count }, () => ({
    id: newId('evt'),
    type: 'esim.activated',
    created_at: new Date().toISOString(),
    data: { esim_id: newId('esim'), order_id: newId('ord'), iccid: '8900099870805937811' },
  }));
  await service.database.pool.query(
    `INSERT INTO events (id, partner_id, mode, type, body, created_at)
     SELECT body::json->>'id', $1, 'sandbox', body::json->>'type', body, (body::json->>'created_at')::timestamptz
     FROM unnest($2::text[]) AS body`,
    [partner.id, envelopes.map((envelope) => JSON.stringify(envelope))],
  );
  return envelopes.map(({ id }) => id);
}

const listen = (...args: string[]): Promise<NodeChild> => user.listen(receiver.url, args, running);

/** Waits for the next second. The service's time has whole seconds, so events of this second are not before "now". */
async function laterSecond(): Promise<void> {
  const second = Math.floor(Date.now() / 1_000);
  await eventually('the next second', () => Math.floor(Date.now() / 1_000) > second);
}

async function secretOfUser(): Promise<string> {
  return (await user.run(['listen', '--print-secret'])).stdout.trim();
}

const idOf = ({ body }: ReceivedWebhook): string => (JSON.parse(body) as { id: string }).id;
const receivedIds = (): string[] => receiver.received.map(idOf);

/** All event ids of the feed, in order. */
async function feedIds(): Promise<string[]> {
  const ids: string[] = [];
  for (let query = ''; ;) {
    const { body } = await partner.sandbox.get(`/v1/events?limit=100${query}`);
    ids.push(...body.data.map(({ id }: { id: string }) => id));
    query = `&after=${body.next_cursor as string}`;
    if (!body.has_more) return ids;
  }
}

function cursorOnDisk(): string {
  const folder = path.join(user.home, '.local/state/partner-esim');
  const [file = ''] = readdirSync(folder).filter((name) => name.endsWith('.json'));
  return readFileSync(path.join(folder, file), 'utf8');
}

async function received(count: number): Promise<void> {
  await eventually(`${count} events at the local server`, () => receiver.received.length >= count);
}

describe('esim listen', () => {
  it('loses and duplicates nothing when it is frozen, killed and restarted', async () => {
    const first = await listen();
    const before = await makeEvents(3);
    await received(before.length);
    // After the page its position is on disk, so the kill hits an idle moment.
    await eventually('the page is behind it', () => cursorOnDisk().includes('"event":null'));
    first.signal('SIGSTOP');
    const meanwhile = await makeEvents(MANY);
    await first.kill();
    expect(receivedIds().toSorted()).toEqual(before.toSorted());

    const feed = await feedIds();
    await listen();
    await received(before.length + MANY);
    expect(feed.toSorted()).toEqual([...before, ...meanwhile].toSorted());
    expect(receivedIds()).toEqual(feed);

    const secret = await secretOfUser();
    for (const { headers, body } of receiver.received) {
      expect(headers['x-service-event']).toBe('esim.activated');
      expect(headers['x-service-delivery']).toBe(
        `dlv_cli_${(JSON.parse(body) as { id: string }).id.slice(4)}`,
      );
      const header = headers['x-service-signature'] as string;
      expect(verifyWebhookSignature({ header, body, secret, toleranceSeconds: 600 })).toBe(true);
    }
  });

  it('starts with new events, with all events, or at the given position', async () => {
    const [first, second, third] = await makeEvents(3);
    const all = await listen('--since', 'beginning');
    await received(3);
    expect(receivedIds().toSorted()).toEqual([first, second, third].toSorted());
    await all.kill();

    const again = receiver.received.length;
    const behind = receivedIds()[1]!;
    const some = await listen('--since', behind);
    await received(again + 1);
    expect(receivedIds().slice(again)).toEqual([receivedIds()[2]]);
    await some.kill();

    user.remove();
    await laterSecond();
    await listen();
    const [next] = await makeEvents(1);
    await received(again + 2);
    expect(receivedIds().at(-1)).toBe(next);
  });

  it('retries an event until the local server accepts it, and no later event overtakes it', async () => {
    receiver.answer = (nth, _webhook, response) => void response.writeHead(nth < 2 ? 500 : 200).end();
    const child = await listen();
    await makeEvents(2);
    await received(4);
    const ids = receivedIds();
    expect(ids.slice(0, 3)).toEqual([ids[0], ids[0], ids[0]]);
    expect(ids[3]).not.toBe(ids[0]);
    const deliveries = new Set(
      receiver.received.slice(0, 3).map(({ headers }) => headers['x-service-delivery']),
    );
    expect(deliveries.size).toBe(1);
    const outcomes = () =>
      jsonLines(child.stdout)
        .filter(({ type }) => type === 'attempt')
        .map(({ outcome }) => outcome);
    await eventually('four attempts are reported', () => outcomes().length === 4);
    expect(outcomes()).toEqual(['500', '500', '200', '200']);
  });

  it('resumes after an outage of the service', async () => {
    // The listener survives while the service restarts on the same port.
    const port = new URL(service.process.api?.url ?? '').port;
    const child = await listen();
    await service.process.stop();
    await eventually('the outage is reported', () => child.stderr.includes('retrying in'));
    service = await startTestService({ database: service.database, env: { PORT: port } });
    const made = await makeEvents(5);
    await received(5);
    expect(receivedIds().toSorted()).toEqual(made.toSorted());
  });

  it('ends on Ctrl-C, and refuses to run twice for the same URL', async () => {
    const first = await listen();
    const second = await user.run(['listen', '--forward-to', receiver.url]);
    expect(second).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`process ${first.pid} is already listening`),
    });
    first.signal('SIGINT');
    expect(await first.exited()).toBe(0);
    await listen();
  });

  it('takes over from a killed listener, even if another process has its pid now', async () => {
    const first = await listen();
    await first.kill();
    const state = path.join(user.home, '.local/state/partner-esim');
    for (const name of readdirSync(state).filter((each) => each.endsWith('.lock'))) {
      const file = path.join(state, name);
      if (statSync(file).isFile()) writeFileSync(file, String(process.pid));
      renameSync(file, path.join(state, name.replace(`.${first.pid}.`, `.${process.pid}.`)));
    }
    await listen();
  });

  it('does not take over from a listener that is only frozen', async () => {
    const first = await listen();
    first.signal('SIGSTOP');
    const second = await user.run(['listen', '--forward-to', receiver.url]);
    expect(second).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`process ${first.pid} is already listening`),
    });
  });

  it('runs at most once when several start together after a kill', async () => {
    await (await listen()).kill();
    const children = Array.from({ length: 4 }, () =>
      user.launch(['listen', '--forward-to', receiver.url, '--json']),
    );
    running.push(...children);
    const isReady = (child: NodeChild): boolean => child.stdout.includes('"ready"');
    await eventually('each listens or has ended', () =>
      children.every((child) => !child.running || isReady(child)),
    );
    expect(children.filter((child) => child.running).length).toBeLessThanOrEqual(1);
    expect(children.filter(isReady).length).toBeLessThanOrEqual(1);
  });

  it('forwards, on its first start, events that occur while it still skips old ones', async () => {
    await makeEvents(250);
    await laterSecond();
    let meanwhile: string[] = [];
    let pages = 0;
    const holder = await startCallHolder(service.process.api?.url ?? '', async (call): Promise<Fate> => {
      if (call.startsWith('GET /v1/events') && ++pages === 2) meanwhile = await makeEvents(3);
      return 'answered';
    });
    // The machine's clock is wrong, and only the service's clock counts.
    const aheadByAnHour = '--import=data:text/javascript,const{now}=Date;Date.now=()=>now()+3600000';
    const child = user.launch(['listen', '--forward-to', receiver.url, '--json'], {
      ESIM_BASE_URL: holder.url,
      NODE_OPTIONS: aheadByAnHour,
    });
    running.push(child);
    await received(3);
    const [last] = await makeEvents(1);
    await received(4);
    expect(receivedIds().toSorted()).toEqual([...meanwhile, last].toSorted());
    await child.kill();
    await holder.close();
  });

  it('resumes at the same position however the URLs are spelled', async () => {
    const { port } = new URL(receiver.url);
    const baseUrl = user.env['ESIM_BASE_URL'] ?? '';
    const spellings = [
      [`http://127.0.0.1:${port}/hooks`, baseUrl],
      [`HTTP://127.0.0.1:${port}/a/../hooks#top`, baseUrl.replace('http', 'HTTP')],
    ] as const;
    const files: unknown[] = [];
    for (const [target, place] of spellings) {
      const child = user.launch(['listen', '-f', target, '--json'], { ESIM_BASE_URL: place });
      running.push(child);
      await eventually('listen is ready', () => child.stdout.includes('"ready"'));
      files.push(jsonLines(child.stdout)[0]!['cursor_file']);
      await child.kill();
    }
    expect(new Set(files).size).toBe(1);
  });

  it('exits with code 3 when the key is revoked', async () => {
    const child = await listen();
    const me = await partner.sandbox.get('/v1/me');
    const keyId = me.body.data.key_id as string;
    await service.admin.post(`/internal/v1/partners/${partner.id}/api-keys/${keyId}/revoke`);
    await makeEvents(1);
    expect(await child.exited()).toBe(3);
    expect(child.stderr).toContain('unauthorized');
    expect(child.stdout + child.stderr).not.toContain(partner.sandboxKey);
  });
});

const fail = (): ReturnType<TestPartner['sandbox']['post']> =>
  partner.sandbox.post('/v1/orders', { package_id: 'pkg_test_out_of_stock' });

const attemptsOf = (child: NodeChild): Record<string, unknown>[] =>
  jsonLines(child.stdout).filter(({ type }) => type === 'attempt');

describe('esim listen with a server that refuses events', () => {
  it('retries after at most five seconds, because the server is being repaired', async () => {
    receiver.answer = (_nth, _webhook, response) => void response.writeHead(500).end();
    const child = await listen();
    await fail();
    await eventually('four attempts', () => attemptsOf(child).length >= 4);
    const pauses = attemptsOf(child).map(({ retry_ms }) => retry_ms);
    expect(pauses.slice(0, 4)).toEqual([1_000, 2_000, 4_000, 5_000]);
    expect(child.stderr).not.toContain('--print-secret');
  });

  it.each([400, 401, 403])(
    'explains once where the secret comes from when the server returns %i',
    async (status) => {
      receiver.answer = (_nth, _webhook, response) => void response.writeHead(status).end();
      const child = await listen('--on-failure', 'skip');
      await fail();
      await fail();
      await eventually('two attempts', () => attemptsOf(child).length >= 2);
      expect(child.stderr.match(/if your server rejected the signature/g)).toHaveLength(1);
      expect(child.stderr).toContain(
        'give it the secret that `esim listen --print-secret` prints; see `esim verify`',
      );
    },
  );

  it('forwards only the chosen types, and skips refused events on request', async () => {
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

  it('refuses a type that does not exist, which would wait forever', async () => {
    const { code, stderr } = await user.run(['listen', receiver.url, '--types', 'order.failed,order.isued']);
    expect([code, stderr]).toEqual([4, expect.stringContaining('type')]);
  });
});
