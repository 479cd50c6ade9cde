import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { Redis, type RedisOptions } from 'ioredis';
import { eventually } from './eventually.js';
import { freePort } from '../../chaos/free-port.js';
import { whyMissing } from './why-missing.js';

export interface TestRedis {
  readonly url: string;
  readonly port: number;
  /** Kills the server, as in a crash. */
  kill(): Promise<void>;
}

/** The reason why tests on Redis cannot run here, or null when they can. */
export function redisMissing(): string | null {
  const isMissing = whyMissing('redis-server', '--version') !== null;
  return isMissing ? 'redis-server is not installed (apt-get install redis-server)' : null;
}

/** Starts a Redis server without persistence on loopback, on a free port by default. */
export async function startRedis(
  options: { readonly port?: number; readonly databases?: number } = {},
): Promise<TestRedis> {
  const { port = await freePort(), databases = 16 } = options;
  const address = ['--port', String(port), '--databases', String(databases)];
  const server = RedisProcess.launch([...address, ...ON_LOOPBACK, ...MEMORY_ONLY]);
  const url = `redis://127.0.0.1:${port}`;
  await eventually('redis answers', () => answers({ port }));
  return { url, port, kill: () => server.kill() };
}

export const ON_LOOPBACK = ['--bind', '127.0.0.1'];
export const MEMORY_ONLY = ['--save', '', '--appendonly', 'no'];

/** A redis-server, possibly a sentinel. */
export class RedisProcess {
  private constructor(private readonly child: ChildProcess) {}

  static launch(args: readonly string[]): RedisProcess {
    return new RedisProcess(spawn('redis-server', args, { stdio: 'ignore' }));
  }

  /** Sends SIGKILL: its connections close, and it accepts no new ones. */
  async kill(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const ended = once(this.child, 'exit');
    this.child.kill('SIGKILL');
    await ended;
  }

  /** Sends SIGSTOP: its connections stay open without any response, as for an unreachable host. */
  freeze(): void {
    this.child.kill('SIGSTOP');
  }
}

/** Queries one server over a separate connection. */
export async function askRedis<T>(
  options: RedisOptions,
  question: (client: Redis) => Promise<T>,
): Promise<T> {
  const client = new Redis({ host: '127.0.0.1', ...options, lazyConnect: true, retryStrategy: () => null });
  client.on('error', () => undefined);
  try {
    await client.connect();
    return await question(client);
  } finally {
    client.disconnect();
  }
}

/** Whether a server accepts commands. */
export async function answers(options: RedisOptions): Promise<boolean> {
  return askRedis(options, async (client) => (await client.ping()) === 'PONG').catch(() => false);
}
