import type { EventEmitter } from 'node:events';
import { Redis, type RedisOptions, type SentinelConnectionOptions, SentinelConnector } from 'ioredis';
import { StandaloneConnector } from 'ioredis/built/connectors/index.js';
import type { RedisAddress, RedisBehindSentinels } from '../config/index.js';

/**
 * Behavior of a command without a server: it waits for one, as BullMQ requires of its connections, or fails at once.
 */
export type WithoutServer = 'wait' | 'fail';

/** A frozen sentinel accepts connections but does not respond. */
const SENTINEL_ANSWER_MS = 2_000;
/** Pauses after all sentinels have failed, the same as ioredis uses with one server. */
const SENTINELS_AGAIN_MS = 50;
const MAX_SENTINELS_AGAIN_MS = 2_000;

type Connecting = ReturnType<StandaloneConnector['connect']>;

/**
 * ioredis handles only the first error of a connection. Once in a thousand times Node.js emits a second one for a TLS
 * connection with a rejected certificate, and without a listener the process would end.
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
 * Connects to Redis or Valkey in any topology (D1), and follows failovers. Failing commands report connection errors,
 * so these need no listener.
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
    sentinelRetryStrategy: (times) => Math.min(times * SENTINELS_AGAIN_MS, MAX_SENTINELS_AGAIN_MS),
    // A frozen or isolated primary keeps its connections. Only the sentinels know that it is no longer the primary.
    failoverDetector: true,
    Connector: FailoverConnector,
    // The primary became a replica during a connection: query the sentinels again and resend the command (2).
    reconnectOnError: (error) => (error.message.includes('READONLY') ? 2 : false),
  });
}

/**
 * ioredis's connector with two fixes. An unreachable sentinel no longer causes an unhandled error per connection. The
 * failover listener of a lost connection is removed; otherwise, if it saw a failover while the sentinels were being
 * queried, it closed the next connection for good.
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
