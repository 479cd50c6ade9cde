import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { NodeChild } from '../harness/child-process.js';
import { freePort } from '../harness/free-port.js';
import {
  ADMIN_TOKEN,
  createTestDatabase,
  eventually,
  HttpClient,
  startReceiver,
  type TestDatabase,
  testEnvironment,
} from '../harness/index.js';

const CALLERS = 20;

interface Service {
  readonly child: NodeChild;
  readonly database: TestDatabase;
  readonly admin: HttpClient;
  readonly partner: HttpClient;
  readonly partnerId: string;
  readonly key: string;
}

const ended: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ended.splice(0).reverse()) await end();
});

/** All roles in one process of the built output, with a partner and a key. */
async function startService(env: Record<string, string>): Promise<Service> {
  const database = await createTestDatabase();
  ended.push(() => database.drop());
  const [port, adminPort] = [await freePort(), await freePort()];
  const child = NodeChild.launch({
    args: ['dist/src/main.js'],
    env: testEnvironment(database.url, { PORT: String(port), ADMIN_PORT: String(adminPort), ...env }),
  });
  ended.push(() => child.kill());
  await child.ready();
  const admin = new HttpClient(`http://127.0.0.1:${adminPort}`, ADMIN_TOKEN);
  const created = await admin.post('/internal/v1/partners', { name: 'Never reads' });
  const partnerId = created.body.data.id as string;
  const made = await admin.post(`/internal/v1/partners/${partnerId}/api-keys`, { mode: 'sandbox' });
  const key = made.body.data.key as string;
  const partner = new HttpClient(`http://127.0.0.1:${port}`, key);
  return { child, database, admin, partnerId, key, partner };
}

/** A caller that sends the same request again and again, and reads nothing. */
async function neverRead(
  baseUrl: string,
  path: string,
  token: string,
  isLastWhole: boolean,
): Promise<Socket> {
  const socket = connect(Number(new URL(baseUrl).port), '127.0.0.1');
  ended.push(() => socket.destroy());
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  socket.pause();
  const request = `GET ${path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${token}\r\n\r\n`;
  // The last one is not whole: Node does not take such a connection for idle when the server closes.
  socket.write(request.repeat(200) + (isLastWhole ? '' : 'GET / HT'));
  return socket;
}

async function manyNeverRead({ admin, partner, key }: Service, isLastWhole: boolean): Promise<void> {
  for (let i = 0; i < CALLERS; i++) {
    await neverRead(partner.baseUrl, '/v1/catalog?limit=100', key, isLastWhole);
    await neverRead(admin.baseUrl, '/openapi/admin.json', ADMIN_TOKEN, isLastWhole);
  }
}

async function cuts({ admin }: Service, reason: string): Promise<number> {
  const text = await (await fetch(`${admin.baseUrl}/metrics`)).text();
  const lines = [...text.matchAll(/^http_connections_cut_total\{([^}]*)\} (\d+)$/gm)];
  return lines
    .filter(([, labels]) => labels!.includes(`reason="${reason}"`))
    .reduce((sum, [, , count]) => sum + Number(count), 0);
}

describe('callers that never read (D43)', () => {
  it('lose their connections after the write time-out, on the partner and the admin port; others are served', async () => {
    const service = await startService({ HTTP_WRITE_TIMEOUT_MS: '1000' });
    await manyNeverRead(service, true);
    expect((await service.partner.get('/v1/me')).status).toBe(200);
    await eventually('all are cut', async () => (await cuts(service, 'write_timeout')) >= 2 * CALLERS);
    expect((await service.partner.get('/v1/me')).status).toBe(200);
  });

  it('do not turn a stop into a failure, nor keep the workers from draining: SIGTERM ends with 0 in time', async () => {
    const service = await startService({
      HTTP_WRITE_TIMEOUT_MS: '600000',
      SHUTDOWN_TIMEOUT_MS: '40000',
      LEASE_MS: '60000',
    });
    const hanging = await startReceiver();
    hanging.answer = () => undefined;
    ended.push(() => hanging.close());
    const { admin, partnerId } = service;
    const endpoint = await admin.post(`/internal/v1/partners/${partnerId}/webhook-endpoints`, {
      mode: 'sandbox',
      url: hanging.url,
    });
    await admin.post(`/internal/v1/partners/${partnerId}/webhook-endpoints/${endpoint.body.data.id}/test`);
    await eventually('an attempt is under way', () => hanging.received.length === 1);
    await manyNeverRead(service, false);
    service.child.signal('SIGTERM');
    // A process that does not end in its time ends itself with 1.
    expect(await service.child.exited(), service.child.stderr).toBe(0);
    // The worker had its own time: it cut the attempt that hangs, and wrote that down.
    const { rows } = await service.database.pool.query('SELECT outcome FROM webhook_attempts');
    expect(rows).toEqual([{ outcome: 'interrupted' }]);
  });
});
