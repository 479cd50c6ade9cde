import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { NodeChild } from '../../harness/child-process.js';
import { freePort } from '../../../chaos/free-port.js';
import {
  createTestDatabase,
  HttpClient,
  startTestService,
  type TestDatabase,
  testEnvironment,
  type TestService,
} from '../../harness/index.js';
import { orderEnded } from '../../harness/order-steps.js';

/** Prints the modules of OpenTelemetry's SDK that a process loads. */
const WATCH = `import { registerHooks } from 'node:module';
  registerHooks({ load: (url, context, next) => {
    if (/@opentelemetry\\/(?!api\\/)/.test(url)) console.log('loads ' + url);
    return next(url, context);
  } });`;

let database: TestDatabase;
let office: TestService;

beforeAll(async () => {
  database = await createTestDatabase();
  office = await startTestService({ role: 'admin', database });
});
afterAll(async () => {
  await office.stop();
  await database.drop();
});

/** Runs the built roles until they have issued an order, and returns the SDK modules that they loaded. */
async function loadedBy(env: Record<string, string>): Promise<{ orderId: string; loaded: string[] }> {
  const port = await freePort();
  const watched = `--import=data:text/javascript,${encodeURIComponent(WATCH)}`;
  const children = (['api', 'worker'] as const).map((role) =>
    NodeChild.launch({
      args: [watched, `dist/src/main.${role}.js`],
      env: testEnvironment(database.url, { ...env, PORT: String(port) }),
    }),
  );
  await Promise.all(children.map((child) => child.ready()));
  const { id } = await office.createPartner();
  const api = new HttpClient(`http://127.0.0.1:${port}`, await office.createKey(id, 'sandbox'));
  const answer = await api.post('/v1/orders', { package_id: 'pkg_fr_1gb_7d', quantity: 1 });
  const order = await orderEnded(api, answer.body.data.id as string);
  await Promise.all(children.map((child) => child.kill()));
  const loaded = children.flatMap(({ stdout }) => stdout.match(/^loads .*$/gm) ?? []);
  return { orderId: order['id'] as string, loaded };
}

async function traceparentsOf(orderId: string): Promise<(string | null)[]> {
  const { rows } = await database.pool.query<{ traceparent: string | null }>(
    `SELECT traceparent FROM orders WHERE id = $1
     UNION ALL SELECT traceparent FROM events WHERE body LIKE '%' || $1 || '%'`,
    [orderId],
  );
  return rows.map(({ traceparent }) => traceparent);
}

describe('a service without a trace endpoint', () => {
  it('loads no SDK in any role and stores no trace', async () => {
    const { orderId, loaded } = await loadedBy({});
    expect(loaded).toEqual([]);
    expect(await traceparentsOf(orderId)).toEqual([null, null]);
  });

  it('would be caught if it loaded the SDK or stored traces', async () => {
    const endpoint = `http://127.0.0.1:${await freePort()}`;
    const { orderId, loaded } = await loadedBy({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint });
    expect(loaded.filter((line) => line.endsWith('/sdk-trace/dist/index.mjs'))).toHaveLength(2);
    expect(await traceparentsOf(orderId)).toEqual([
      expect.stringMatching(/^00-/) as string,
      expect.stringMatching(/^00-/) as string,
    ]);
  });
});
