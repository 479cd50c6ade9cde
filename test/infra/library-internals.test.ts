import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import net, { type AddressInfo } from 'node:net';
import { createPostgresBackend } from 'bullmq';
import { SentinelConnector } from 'ioredis';
import { StandaloneConnector } from 'ioredis/built/connectors/index.js';
import { Client } from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createDataSource, poolOf } from '../../src/infra/database/index.js';
import { createTestDatabase, type TestDatabase } from '../harness/index.js';

/**
 * Library versions whose private fields we read, and the file that uses them. Check the fields before you change a
 * version.
 */
const READ_VERSIONS: readonly (readonly [library: string, version: string, usedIn: string])[] = [
  ['typeorm', '1.1.1', 'src/infra/database/open-transaction.ts'],
  ['pg', '8.23.1', 'src/infra/database/database-client.ts'],
  ['bullmq', '6.7.0', 'src/infra/jobs/retrying-postgres-backend.ts'],
  ['ioredis', '5.11.1', 'src/infra/redis-client.ts'],
  ['node', '24.21.0', 'src/infra/http/socket-limits.ts'],
];

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

describe('each private field that we read', () => {
  it.each(READ_VERSIONS)('belongs to %s %s, used in %s', (library, version) => {
    const manifest = JSON.parse(readFileSync(`node_modules/${library}/package.json`, 'utf8')) as {
      version: string;
    };
    expect(manifest.version).toBe(version);
  });

  it('exposes the transaction and the connection of a TypeORM runner', async () => {
    const settings = { url: database.url, poolMax: 1, entities: [], applicationName: 'test' };
    const dataSource = await createDataSource(settings).initialize();
    try {
      expect(poolOf(dataSource).totalCount).toBe(1);
      const runner = dataSource.createQueryRunner();
      const databaseConnection: unknown = await runner.connect();
      expect(runner).toMatchObject({ isTransactionActive: false, transactionDepth: 0 });
      expect((runner as unknown as { databaseConnection: unknown }).databaseConnection).toBe(
        databaseConnection,
      );
      await runner.startTransaction();
      expect(runner).toMatchObject({ isTransactionActive: true, transactionDepth: 1 });
      await runner.rollbackTransaction();
      await runner.release();
    } finally {
      await dataSource.destroy();
    }
  });

  it('exposes the socket and the startup packet of a pg client', () => {
    const client = new Client();
    expect(client).toHaveProperty('connection.stream.cork');
    expect(client).toHaveProperty('getStartupConf', expect.any(Function));
  });

  it('exposes the first connection of a BullMQ backend', async () => {
    const backend = createPostgresBackend('test', {
      connection: { connectionString: database.url, schema: 'bullmq' },
    });
    // Dropping the database may terminate a connection that `close()` has ended but not waited for.
    backend.on('error', () => undefined);
    const ready = (backend as unknown as { waitUntilReady(): Promise<void> }).waitUntilReady();
    expect(backend).toHaveProperty('readyPromise', expect.any(Promise));
    expect(backend).toHaveProperty('connection.readyPromise', expect.any(Promise));
    await ready;
    await backend.close();
  });

  it('exposes the sentinels and the failover detector of an ioredis connector', () => {
    const connector = new SentinelConnector({ sentinels: [{ host: '127.0.0.1' }], name: 'primary' });
    expect(connector).toHaveProperty('connectToSentinel', expect.any(Function));
    expect(connector).toHaveProperty('failoverDetector', null);
    expect(StandaloneConnector.prototype).toHaveProperty('connect', expect.any(Function));
  });

  it('exposes how much of a write the kernel has not accepted yet', async () => {
    const server = net.createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const socket = net.connect((server.address() as AddressInfo).port, '127.0.0.1');
    await once(socket, 'connect');
    expect(socket).toHaveProperty('_handle.writeQueueSize', 0);
    socket.destroy();
    server.close();
  });
});
