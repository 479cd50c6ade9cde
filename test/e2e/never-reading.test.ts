import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { NodeChild } from '../harness/child-process.js';
import { freePort } from '../../chaos/free-port.js';
import {
  ADMIN_TOKEN,
  createTestDatabase,
  eventually,
  HttpClient,
  startReceiver,
  startTestService,
  testEnvironment,
} from '../harness/index.js';

const CALLERS = 20;
/** A small number, because the service shares this process. */
const FEW = 3;

const ended: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ended.splice(0).reverse()) await end();
});

/** A caller that repeats one request and never reads. */
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
  // The last request is incomplete, so Node does not treat the connection as idle when the server closes.
  socket.write(request.repeat(200) + (isLastWhole ? '' : 'GET / HT'));
  return socket;
}

async function manyNeverRead(
  adminUrl: string,
  partnerUrl: string,
  key: string,
  callers: number,
  isLastWhole: boolean,
): Promise<void> {
  for (let i = 0; i < callers; i++) {
    await neverRead(partnerUrl, '/v1/catalog?limit=100', key, isLastWhole);
    await neverRead(adminUrl, '/openapi/admin.json', ADMIN_TOKEN, isLastWhole);
  }
}

describe('a caller that never reads (D43)', () => {
  it('loses its connection after the write timeout on the partner and the admin port, and others are served', async () => {
    const service = await startTestService({ env: { HTTP_WRITE_TIMEOUT_MS: '1000' } });
    ended.push(() => service.stop());
    const { sandbox, sandboxKey } = await service.createPartner();
    await manyNeverRead(service.admin.baseUrl, sandbox.baseUrl, sandboxKey, FEW, true);
    expect((await sandbox.get('/v1/me')).status).toBe(200);
    const cuts = async (): Promise<number> => {
      const text = await service.process.resources.metrics.metrics();
      return [...text.matchAll(/^http_connections_cut_total\{.*reason="write_timeout".*\} (\d+)$/gm)].reduce(
        (sum, [, count]) => sum + Number(count),
        0,
      );
    };
    await eventually('all are cut', async () => (await cuts()) >= 2 * FEW);
    expect((await sandbox.get('/v1/me')).status).toBe(200);
  });

  it('does not make shutdown fail or keep workers from draining: SIGTERM exits with 0 in time', async () => {
    const database = await createTestDatabase();
    ended.push(() => database.drop());
    const [port, adminPort] = [await freePort(), await freePort()];
    const child = NodeChild.launch({
      args: ['dist/src/main.js'],
      env: testEnvironment(database.url, {
        ...{ PORT: String(port), ADMIN_PORT: String(adminPort), LEASE_MS: '60000' },
        ...{ HTTP_WRITE_TIMEOUT_MS: '600000', SHUTDOWN_TIMEOUT_MS: '40000' },
      }),
    });
    ended.push(() => child.kill());
    await child.ready();
    const admin = new HttpClient(`http://127.0.0.1:${adminPort}`, ADMIN_TOKEN);
    const { id } = (await admin.post('/internal/v1/partners', { name: 'Never reads' })).body.data;
    const made = await admin.post(`/internal/v1/partners/${id}/api-keys`, { mode: 'sandbox' });
    const hanging = await startReceiver();
    hanging.answer = () => undefined;
    ended.push(() => hanging.close());
    const endpoints = `/internal/v1/partners/${id}/webhook-endpoints`;
    const endpoint = await admin.post(endpoints, { mode: 'sandbox', url: hanging.url });
    await admin.post(`${endpoints}/${endpoint.body.data.id}/test`);
    await eventually('an attempt is under way', () => hanging.received.length === 1);
    await manyNeverRead(
      admin.baseUrl,
      `http://127.0.0.1:${port}`,
      made.body.data.key as string,
      CALLERS,
      false,
    );
    child.signal('SIGTERM');
    // A process that exceeds its shutdown timeout exits with 1.
    expect(await child.exited(), child.stderr).toBe(0);
    // The worker aborted the hanging attempt in time and recorded it.
    const { rows } = await database.pool.query('SELECT outcome FROM webhook_attempts');
    expect(rows).toEqual([{ outcome: 'interrupted' }]);
  });
});
