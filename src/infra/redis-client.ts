import type { EventEmitter } from 'node:events';
import { Redis, type RedisOptions, type SentinelConnectionOptions, SentinelConnector } from 'ioredis';
import { StandaloneConnector } from 'ioredis/built/connectors/index.js';
import type { RedisAddress, RedisBehindSentinels } from '../config/index.js';

/**
 * What becomes of a command while there is no server: it waits for one, as BullMQ asks of its connections, or it fails
 * at once.
 */
export type WithoutServer = 'wait' | 'fail';

/** A sentinel that has stopped takes connections and answers nothing. */
const SENTINEL_ANSWER_MS = 2_000;
/** When none of them helped: the pauses that ioredis makes with one server. */
const SENTINELS_AGAIN_MS = 50;
const LONGEST_SENTINELS_AGAIN_MS = 2_000;

type Connecting = ReturnType<StandaloneConnector['connect']>;

/**
 * ioredis listens to the first error of a connection alone. Node.js emits a second one of a TLS connection whose certificate
 * was refused, once in a thousand times, and nobody listening would end the process.
 */
class SafeConnector extends StandaloneConnector {
  constructor(options: unknown) {
    super(options as ConstructorParameters<typeof StandaloneConnector>[0]);
  }

  override connect(...args: Parameters<StandaloneConnector['connect']>): Connecting {
    return ignoringErrors(super.connect(...args));
  }
}

async function ignoringErrors(connecting: Connecting): Connecting {
  const stream = await connecting;
  return stream.on('error', () => undefined);
}

/**
 * Connects to Redis or Valkey wherever it is (D1), and follows it through failovers. Errors of the connection are told by
 * the commands that fail: they need no listener.
 */
export function openRedis(address: RedisAddress, withoutServer: WithoutServer): Redis {
  const client =
    address.topology === 'single'
      ? new Redis(address.url, { ...optionsOf(withoutServer), Connector: SafeConnector })
      : connectToPrimary(address, withoutServer);
  return client.on('error', () => undefined);
}

function optionsOf(withoutServer: WithoutServer): RedisOptions {
  return withoutServer === 'wait'
    ? { maxRetriesPerRequest: null }
    : { maxRetriesPerRequest: 1, enableOfflineQueue: false };
}

function connectToPrimary(address: RedisBehindSentinels, withoutServer: WithoutServer): Redis {
  const { username, password } = address.sentinelLogin;
  return new Redis({
    ...optionsOf(withoutServer),
    ...address.login,
    sentinels: [...address.sentinels],
    name: address.primary,
    db: address.database,
    ...(username !== undefined && { sentinelUsername: username }),
    ...(password !== undefined && { sentinelPassword: password }),
    ...(address.tls && { tls: {}, sentinelTLS: {}, enableTLSForSentinelMode: true }),
    sentinelCommandTimeout: SENTINEL_ANSWER_MS,
    sentinelRetryStrategy: (times) => Math.min(times * SENTINELS_AGAIN_MS, LONGEST_SENTINELS_AGAIN_MS),
    // A primary that froze or was cut off keeps its connections: only the sentinels say that it is none any more.
    failoverDetector: true,
    Connector: FailoverConnector,
    // Of a primary that was made a replica under a connection: ask the sentinels again, and say it there (2: again).
    reconnectOnError: (error) => (error.message.includes('READONLY') ? 2 : false),
  });
}

/**
 * ioredis's own, with two faults mended. A sentinel that is away is no unhandled error, written to stderr
 * for every connection. And the failover listener of a lost connection is removed: it ended the next connection for good
 * when it saw the failover while the sentinels were asked.
 */
class FailoverConnector extends SentinelConnector {
  constructor(options: unknown) {
    super(options as SentinelConnectionOptions);
    const connectToSentinel = this['connectToSentinel'] as (
      endpoint: unknown,
      options?: RedisOptions,
    ) => EventEmitter;
    this['connectToSentinel'] = (endpoint: unknown, options?: RedisOptions): EventEmitter =>
      connectToSentinel
        .call(this, endpoint, { ...options, Connector: SafeConnector })
        .on('error', () => undefined);
  }

  override connect(...args: Parameters<SentinelConnector['connect']>): Connecting {
    this.disconnect();
    return ignoringErrors(super.connect(...args));
  }
}
