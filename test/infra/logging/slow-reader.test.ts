import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { afterEach, describe, expect, it } from 'vitest';
import { PROJECT_ROOT } from '../../harness/child-process.js';
import { createTestDatabase, eventually, HttpClient, testEnvironment } from '../../harness/index.js';
import { freePort } from '../../../chaos/free-port.js';

type Child = ChildProcessByStdio<null, Readable, Readable>;

let child: Child | null = null;
afterEach(() => void child?.kill('SIGKILL'));

/** Starts the built service. Its stdout stays unread until the test reads it. */
function launch(
  args: readonly string[],
  env: Record<string, string> = {},
): { child: Child; said: () => string } {
  const { PATH = '' } = process.env;
  const options = { cwd: PROJECT_ROOT, env: { PATH, ...env } };
  const launched = spawn(process.execPath, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
  child = launched;
  let stderr = '';
  launched.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  return { child: launched, said: () => stderr };
}

/** Logs 400,000 lines of 500 bytes, then their cost, and then one line from time to time. */
const CHATTERBOX = `
  import { Registry } from 'prom-client';
  import { LogDestination } from './dist/src/infra/log-destination.js';
  import { createLogger } from './dist/src/infra/logging.js';
  const destination = new LogDestination();
  const logger = createLogger('info', 'test', destination);
  const registry = new Registry();
  destination.reportTo(logger, registry);
  const before = process.memoryUsage().rss;
  let most = 0;
  for (let i = 0; i < 400; i++) {
    for (let j = 0; j < 1000; j++) logger.info({ event: 'noise', text: 'x'.repeat(500) });
    most = Math.max(most, process.memoryUsage().rss - before);
    await new Promise((resolve) => setImmediate(resolve));
  }
  const metrics = await registry.metrics();
  const counted = Number(/^log_lines_dropped_total (\\d+)/m.exec(metrics)?.[1]);
  process.stderr.write(JSON.stringify({ most, counted, dropped: destination.droppedLines }) + '\\n');
  setInterval(() => logger.info({ event: 'later' }), 100);
`;

describe('a stdout reader that never reads (D43)', () => {
  it('costs log lines, not memory: a metric counts the lines, and one line reports them once it reads', async () => {
    const { child: noisy, said } = launch(['--input-type=module', '-e', CHATTERBOX]);
    await eventually('all is said', () => said().includes('\n'));
    const { most, counted, dropped } = JSON.parse(said()) as Record<string, number>;
    expect(counted).toBeGreaterThan(300_000);
    expect(counted).toBe(dropped);
    expect(most).toBeLessThan(150_000_000);
    let stdout = '';
    noisy.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
    // One line, or several if writing took longer than the interval between reports.
    const reports = () =>
      stdout
        .split('\n')
        .slice(0, -1)
        .filter((text) => text.includes('log.dropped'))
        .map((text) => JSON.parse(text) as { lines: number; level: string });
    await eventually('how many were dropped', () =>
      reports().reduce((sum, { lines }) => sum + lines, 0) >= counted! ? true : null,
    );
    expect(reports().every(({ level }) => level === 'warn')).toBe(true);
  });

  it('does not delay a stop: SIGTERM exits with 0', async () => {
    const database = await createTestDatabase();
    const port = await freePort();
    const env = testEnvironment(database.url, {
      PORT: String(port),
      LOG_LEVEL: 'info',
      SHUTDOWN_TIMEOUT_MS: '30000',
    });
    const { child: api, said } = launch(['dist/src/main.api.js'], env);
    const client = new HttpClient(`http://127.0.0.1:${port}`, null);
    await eventually('the API listens', () =>
      client.get('/v1/me').then(
        ({ status }) => status === 401,
        () => null,
      ),
    );
    // A pipe holds about 200 KB, and a call's log line is about 350 bytes.
    for (let round = 0; round < 20; round++) {
      await Promise.all(Array.from({ length: 100 }, () => client.get(`/v1/${'x'.repeat(300)}`)));
    }
    const exited = once(api, 'exit');
    api.kill('SIGTERM');
    expect(await exited, said()).toEqual([0, null]);
    await database.drop();
  });
});
