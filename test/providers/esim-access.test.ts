import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { DataSource } from 'typeorm';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { EsimAccessProvider } from '../../src/providers/esim-access/esim-access-provider.js';
import { signEsimAccessRequest } from '../../src/providers/esim-access/esim-access-api.js';
import { SIMULATOR_CREDENTIALS } from '../../simulators/esim-access/simulator.js';
import { createTestDatabase, type TestDatabase } from '../harness/index.js';
import { describeConformance } from './conformance.js';
import { type EsimAccessWorld, makeEsimAccessWorld, openTestDataSource } from './esim-access-world.js';
import { UNPACED, find, newOrder, newPlacementGuard, place, provision } from './provider-world.js';

let database: TestDatabase;
let dataSource: DataSource;
beforeAll(async () => {
  database = await createTestDatabase();
  dataSource = await openTestDataSource(database.url);
});
afterAll(async () => {
  await dataSource.destroy();
  await database.drop();
});

describeConformance('eSIM Access', () => makeEsimAccessWorld(dataSource));

describe('eSIM Access', () => {
  let world: EsimAccessWorld;
  beforeEach(async () => {
    world = await makeEsimAccessWorld(dataSource);
  });
  afterEach(() => world.close());

  it('signs as the published example does', () => {
    const signature = signEsimAccessRequest({
      timestamp: '1628670421',
      requestId: '4ce9d9cdac9e4e17b3a2c66c358c1ce2',
      accessCode: '11111',
      secretKey: '1111',
      body: '{"imsi":"326543826"}',
    });
    expect(signature).toBe('7eb765e27df5373dea2dbc8c41a7d9557743e46c8054750f3d851b3fd01d0835');
  });

  it('writes neither keys nor activation codes to the log', async () => {
    const { profiles } = await provision(world.provider, newOrder(world));
    const log = JSON.stringify(world.logLines);
    expect(log).toContain('provider.call');
    expect(log).not.toContain(profiles[0]!.matchingId);
    expect(log.toLowerCase()).not.toContain('signature');
  });

  it('finds what it bought after the simulator was killed and started again', async () => {
    const directory = mkdtempSync(path.join(tmpdir(), 'esim-access-'));
    const order = newOrder(world, 2);
    const programs: { kill(): Promise<void> }[] = [];
    try {
      const first = await startProgram(directory);
      programs.push(first);
      expect(await place(first.provider, order)).toMatchObject({ state: 'provisioned' });
      await first.kill();
      const second = await startProgram(directory);
      programs.push(second);
      expect(await find(second.provider, order)).toMatchObject({ state: 'provisioned' });
    } finally {
      for (const program of programs) await program.kill();
      rmSync(directory, { recursive: true, force: true });
    }
  });
});

/** The simulator as its own program, with its purchases in `directory`. */
async function startProgram(
  directory: string,
): Promise<{ provider: EsimAccessProvider; kill(): Promise<void> }> {
  const child = spawn(
    process.execPath,
    [
      'simulators/esim-access/main.ts',
      '--port',
      '0',
      '--rate',
      '0',
      '--state',
      path.join(directory, 'state'),
    ],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  const { port } = JSON.parse(line.toString()) as { port: number };
  const settings = {
    ...SIMULATOR_CREDENTIALS,
    baseUrl: `http://127.0.0.1:${port}`,
    timeoutMs: 5_000,
    readLagMs: 0,
  };
  const logger = { info: () => undefined, warn: () => undefined, error: () => undefined };
  const pace = UNPACED;
  const provider = new EsimAccessProvider(settings, { pace, guard: newPlacementGuard(dataSource), logger });
  return {
    provider,
    kill: async () => {
      if (child.signalCode !== null) return;
      await provider.close();
      child.kill('SIGKILL');
      await once(child, 'exit');
    },
  };
}
