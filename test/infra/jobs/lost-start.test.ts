import { once } from 'node:events';
import net from 'node:net';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createTestDatabase, eventually, type TestDatabase } from '../../harness/index.js';
import { NodeChild } from '../../harness/child-process.js';
import { overTcp } from '../../harness/database.js';

/** A queue worker that reports its connection, as long as its event loop runs. */
const WORKER = `
  import { pino } from 'pino';
  import { Worker } from 'bullmq';
  import { openQueueConnection } from './dist/src/infra/jobs/index.js';
  const url = process.env.DATABASE_URL;
  const queue = openQueueConnection({
    databaseUrl: url, listenUrl: url, redis: null, poolMax: 4, logger: pino({ level: 'silent' }),
  });
  const worker = new Worker('lost-start', () => Promise.resolve(), { connection: queue.options });
  worker.on('error', () => undefined);
  const look = () => worker.waitUntilReady().then(() => console.log('ready'), () => setTimeout(look, 50));
  look();
`;

let database: TestDatabase;
let proxy: net.Server;
let child: NodeChild | null = null;
let dropped = 0;
const sockets = new Set<net.Socket>();

/** A proxy to PostgreSQL that cuts the first connections after their first bytes. */
async function startProxy(drops: number): Promise<number> {
  const target = overTcp(database.url);
  proxy = net.createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
    if (dropped < drops) {
      dropped += 1;
      socket.once('data', () => socket.destroy());
      return;
    }
    const server = net.connect(Number(target.port), target.hostname);
    server.on('error', () => socket.destroy()).on('close', () => socket.destroy());
    socket.on('close', () => server.destroy());
    socket.pipe(server).pipe(socket);
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  return (proxy.address() as net.AddressInfo).port;
}

beforeEach(async () => {
  database = await createTestDatabase();
});
afterEach(async () => {
  await child?.kill();
  proxy.close();
  for (const socket of sockets) socket.destroy();
  await database.drop();
});

it("starts the worker's queue once the database is back, even if its first connections were lost", async () => {
  const url = overTcp(database.url);
  url.port = String(await startProxy(5));
  // A child process, because a loop that blocks the event loop would block this process as well.
  child = NodeChild.launch({ args: ['--input-type=module', '-e', WORKER], env: { DATABASE_URL: url.href } });
  await child.ready();
  expect(dropped).toBe(5);
  await eventually('it listens', async () => {
    const { rows } = await database.pool.query(
      `SELECT FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'lost-start'`,
    );
    return rows.length > 0;
  });
});
