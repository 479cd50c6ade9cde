import { randomUUID } from 'node:crypto';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { backingKind } from '../harness/backing-service.js';
import { overTcp } from '../harness/database.js';
import { startTestService, type TestService } from '../harness/index.js';

const ORDER = { package_id: 'pkg_fr_1gb_7d', quantity: 1 };
const CALLS = 8;
const NEITHER_EDGE_NOR_QUEUE = /application_name\0partner-esim-api\0/;

/** A proxy between the API and PostgreSQL that counts the round trips of the API's transactions. */
class CountingProxy {
  roundTrips = 0;
  private readonly sockets = new Set<Socket>();

  private constructor(
    private readonly server: Server,
    readonly url: string,
  ) {}

  static async start(databaseUrl: string): Promise<CountingProxy> {
    const target = new URL(databaseUrl);
    const server = createServer((client) => proxy.forward(client, target));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const url = overTcp(databaseUrl);
    url.hostname = '127.0.0.1';
    url.port = String((server.address() as { port: number }).port);
    const proxy = new CountingProxy(server, url.href);
    return proxy;
  }

  async stop(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    await new Promise((resolve) => this.server.close(resolve));
  }

  private forward(client: Socket, { hostname, port }: URL): void {
    const upstream = connect(Number(port), hostname);
    let isCounted = false;
    let isAnswered = true;
    for (const socket of [client, upstream]) {
      this.sockets.add(socket);
      socket.on('error', () => undefined).on('close', () => (client.destroy(), upstream.destroy()));
    }
    client.on('data', (bytes) => {
      isCounted ||= NEITHER_EDGE_NOR_QUEUE.test(bytes.toString('latin1'));
      if (isCounted && isAnswered) this.roundTrips++;
      isAnswered = false;
      upstream.write(bytes);
    });
    upstream.on('data', (bytes) => {
      isAnswered = true;
      client.write(bytes);
    });
  }
}

const isPooled = backingKind() === 'pgbouncer';
if (isPooled)
  console.warn('round trips are not counted behind PgBouncer: each transaction sets its limits in one more');

let admin: TestService;
let key: string;

beforeAll(async () => {
  admin = await startTestService({ role: 'admin' });
  ({ sandboxKey: key } = await admin.createPartner());
});
afterAll(() => admin.stop());

describe.skipIf(isPooled).each(['on', 'off'])('order acceptance with DATABASE_PREPARED=%s', (prepared) => {
  let proxy: CountingProxy;
  let api: TestService;

  beforeAll(async () => {
    const { database } = admin;
    proxy = await CountingProxy.start(database.url);
    const env = { DATABASE_PREPARED: prepared, DATABASE_POOL_MAX: '2' };
    api = await startTestService({ role: 'api', database: { ...database, url: proxy.url }, env });
    // The first calls open connections and prepare statements.
    for (let i = 0; i < 4; i++) await place();
  });

  afterAll(async () => {
    await api.stop();
    await proxy.stop();
  });

  const place = (body: object = ORDER, idempotencyKey: string = randomUUID()) =>
    api.partnerApi(key).post('/v1/orders', body, { idempotencyKey });

  /**
   * The lower quartile of several calls. On a busy machine, the response to half a pipeline may arrive before the rest
   * is sent.
   */
  async function usualRoundTripsOf(work: () => Promise<unknown>): Promise<number> {
    const counts: number[] = [];
    for (let i = 0; i < CALLS; i++) {
      const before = proxy.roundTrips;
      await work();
      counts.push(proxy.roundTrips - before);
    }
    return counts.sort((a, b) => a - b)[CALLS / 4]!;
  }

  it('takes three round trips for an order: claim and package, the order, response and commit', async () => {
    expect(await usualRoundTripsOf(async () => expect((await place()).status).toBe(202))).toBe(3);
  });

  it('takes three for a refusal after a write, and stores only the response', async () => {
    const reference = randomUUID();
    expect((await place({ ...ORDER, reference })).status).toBe(202);
    let idempotencyKey = '';
    const taken = async () => {
      const response = await place({ ...ORDER, reference }, idempotencyKey);
      expect([response.status, response.body.code]).toEqual([409, 'reference_taken']);
    };
    const takenAnew = () => {
      idempotencyKey = randomUUID();
      return taken();
    };
    expect(await usualRoundTripsOf(takenAnew)).toBe(3);
    await taken();
    const { rows } = await admin.database.pool.query<{ orders: string; status: number }>(
      `SELECT (SELECT count(*) FROM orders WHERE reference = $1) AS orders, status
       FROM idempotency_keys WHERE key = $2`,
      [reference, idempotencyKey],
    );
    expect(rows).toEqual([{ orders: '1', status: 409 }]);
  });

  it('takes three for a repeated key: claim, stored response, commit', async () => {
    const idempotencyKey = randomUUID();
    await place(ORDER, idempotencyKey);
    const replay = async () =>
      expect((await place(ORDER, idempotencyKey)).headers.get('idempotent-replayed')).toBe('true');
    expect(await usualRoundTripsOf(replay)).toBe(3);
  });
});
