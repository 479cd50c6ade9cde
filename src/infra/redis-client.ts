import type { EventEmitter } from 'node:events';
import {
  Cluster,
  Redis,
  type RedisOptions,
  type SentinelConnectionOptions,
  SentinelConnector,
} from 'ioredis';
import { StandaloneConnector } from 'ioredis/built/connectors/index.js';
import type { RedisAddress, RedisBehindSentinels, RedisCluster } from '../config/index.js';

/** In a cluster all keys of one call must lie in one slot. */
export type RedisClient = Redis | Cluster;

/**
 * What becomes of a command while there is no server: it waits for one, as BullMQ asks of its connections, or it fails
 * at once.
 */
export type WithoutServer = 'wait' | 'fail';

type Connect = (
  this: StandaloneConnector & SentinelConnector,
  ...args: Parameters<StandaloneConnector['connect']>
) => ReturnType<StandaloneConnector['connect']>;

/** A sentinel that has stopped takes connections and answers nothing. */
const SENTINEL_ANSWER_MS = 2_000;
/** When none of them helped: the pauses that ioredis makes with one server. */
const SENTINELS_AGAIN_MS = 50;
const LONGEST_SENTINELS_AGAIN_MS = 2_000;
/** A node that is unreachable says nothing: that another one has its slots is seen when somebody asks. */
const SLOTS_REFRESH_MS = 5_000;
const MOST_REDIRECTIONS_OF_ONE_THAT_FAILS = 4;

/**
 * ioredis listens to the first error of a connection alone, and Node.js tells a second one of a TLS connection: that its
 * certificate was refused, then, once in a thousand times, the alert of a server that was hung up on. Without this the
 * second one ends the process. In the classes, as a cluster, sentinels and BullMQ make connections of their own.
 */
const connectors: readonly { connect: Connect }[] = [
  StandaloneConnector.prototype,
  SentinelConnector.prototype,
];
for (const connector of connectors) {
  const { connect: connectOnce } = connector;
  connector.connect = async function (...args) {
    const stream = await connectOnce.apply(this, args);
    return stream.on('error', () => undefined);
  };
}

/**
 * Connects to Redis or Valkey wherever it is (D1), and follows it through failovers. Errors of the connection are told by
 * the commands that fail: they need no listener.
 */
export function openRedis(address: RedisAddress, withoutServer: WithoutServer): RedisClient {
  const client = connect(address, withoutServer);
  (client as EventEmitter).on('error', () => undefined);
  return client;
}

function connect(address: RedisAddress, withoutServer: WithoutServer): RedisClient {
  switch (address.topology) {
    case 'single':
      return new Redis(address.url, optionsOf(withoutServer));
    case 'sentinel':
      return connectToPrimary(address, withoutServer);
    case 'cluster':
      return connectToCluster(address, withoutServer);
  }
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
 * ioredis's own, with two faults mended. A sentinel that is away is no unhandled error, said on stderr for every connection.
 * And the listener for failovers of a connection that was lost must not live on: it ended the next one for good when it
 * heard of the failover while the sentinels were asked.
 */
class FailoverConnector extends SentinelConnector {
  constructor(options: unknown) {
    super(options as SentinelConnectionOptions);
    const connectToSentinel = this['connectToSentinel'] as (...args: unknown[]) => EventEmitter;
    this['connectToSentinel'] = (...args: unknown[]): EventEmitter =>
      connectToSentinel.apply(this, args).on('error', () => undefined);
  }

  override connect(
    ...args: Parameters<SentinelConnector['connect']>
  ): ReturnType<SentinelConnector['connect']> {
    (this['failoverDetector'] as { cleanup(): void } | null)?.cleanup();
    return super.connect(...args);
  }
}

function connectToCluster({ nodes, login, tls }: RedisCluster, withoutServer: WithoutServer): Cluster {
  const { maxRetriesPerRequest = null } = optionsOf(withoutServer);
  return new Cluster([...nodes], {
    // Names stay names: a certificate is for the name, and a name may lead elsewhere tomorrow.
    dnsLookup: (name, done) => done(null, name),
    slotsRefreshInterval: SLOTS_REFRESH_MS,
    ...(withoutServer === 'fail' && {
      enableOfflineQueue: false,
      retryDelayOnFailover: 0,
      retryDelayOnClusterDown: 0,
      maxRedirections: MOST_REDIRECTIONS_OF_ONE_THAT_FAILS,
    }),
    redisOptions: { ...login, ...(tls && { tls: {} }), maxRetriesPerRequest },
  });
}
