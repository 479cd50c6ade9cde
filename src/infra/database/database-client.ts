import type { Writable } from 'node:stream';
import { Client, type PoolConfig } from 'pg';
import { parseDatabaseUrl } from '../../config/index.js';
import { ServerContact, type ServerSession } from './server-contact.js';

/** Settings of a database connection. Times in milliseconds. */
export interface DatabaseClientSettings {
  readonly url: string;
  readonly applicationName: string;
  /** Schema in which the session's statements resolve names. */
  readonly schema?: string;
  /**
   * `url` points to a pooler in transaction mode, which takes no start-up options: transactions set their own limits.
   */
  readonly isPooled?: boolean;
  /**
   * Timeout after which PostgreSQL cancels a statement; 0, the default, disables it, and the client waits indefinitely.
   */
  readonly statementTimeoutMs?: number;
  /** Timeout of a statement's wait for a lock; 0, the default, disables it. */
  readonly lockTimeoutMs?: number;
  /** False when an intermediate pooler drops prepared statements (`DATABASE_PREPARED`). */
  readonly prepared?: boolean;
  /** Timeout for connecting. */
  readonly connectTimeoutMs: number;
  /** Statements take milliseconds and never wait for locks. */
  readonly isBrief?: boolean;
  /**
   * The idle session sends `SELECT 1` every 5 s. If it proves dead, `contact` closes the process's other connections.
   */
  readonly hasHeartbeat?: boolean;
  /** The other connections of the process. */
  readonly contact?: ServerContact;
}

/** TCP keep-alive at both ends; shorter than the idle timeout of firewalls. */
const KEEP_ALIVE_MS = 10_000;
/** Our transactions wait for nothing but the database. An idle one was abandoned and still holds its locks. */
const IDLE_IN_TRANSACTION_MS = 10_000;
/** Network time allowed on top of the statement timeout. */
const ANSWER_MARGIN_MS = 2_000;
/** Time limit for the server to close an ended connection. */
const END_LIMIT_MS = 2_000;

/**
 * Session settings that the code relies on, and that a database, a role or a server may change (D66): the format of
 * values in both directions, name resolution, and transaction properties.
 */
export const SESSION_SETTINGS: Readonly<Record<string, string>> = {
  search_path: 'public',
  IntervalStyle: 'postgres',
  bytea_output: 'hex',
  extra_float_digits: '1',
  array_nulls: 'on',
  default_transaction_isolation: 'read committed',
  default_transaction_read_only: 'off',
  default_transaction_deferrable: 'off',
};

/**
 * More such settings, in the format that the server reports. Poolers in transaction mode know these and apply them per
 * client.
 */
const POOLED_SETTINGS: Readonly<Record<string, string>> = {
  DateStyle: 'ISO, MDY',
  TimeZone: 'UTC',
  standard_conforming_strings: 'on',
};

/**
 * Settings for speed alone, which a pooler's sessions need not have. A connection keeps a plan that was made while a
 * queue was empty, and with a sequential scan it would read the whole table later. Before PostgreSQL 18, a scan that is
 * avoided but necessary costs so much that JIT would compile it.
 */
const PLAN_SETTINGS: Readonly<Record<string, string>> = { enable_seqscan: 'off', jit: 'off' };

/** Let the server detect that this process is gone, and release its sessions' locks. */
const LIVENESS_SETTINGS: Readonly<Record<string, string>> = {
  idle_session_timeout: '0',
  idle_in_transaction_session_timeout: String(IDLE_IN_TRANSACTION_MS),
  tcp_keepalives_idle: String(KEEP_ALIVE_MS / 1_000),
  tcp_keepalives_interval: '5',
  tcp_keepalives_count: '3',
  tcp_user_timeout: '20000',
};

/** Settings that a session requests at its start as `options`. A pooler must not drop them. */
export function settingsOfSession(
  settings: Pick<DatabaseClientSettings, 'schema' | 'statementTimeoutMs' | 'lockTimeoutMs'>,
): Readonly<Record<string, string>> {
  return {
    ...SESSION_SETTINGS,
    ...PLAN_SETTINGS,
    ...LIVENESS_SETTINGS,
    ...(settings.schema === undefined ? {} : { search_path: settings.schema }),
    statement_timeout: String(settings.statementTimeoutMs ?? 0),
    lock_timeout: String(settings.lockTimeoutMs ?? 0),
  };
}

/** Settings that transactions apply when a pooler prevents session settings. */
export function settingsOfTransaction(
  settings: Pick<DatabaseClientSettings, 'statementTimeoutMs' | 'lockTimeoutMs'>,
): readonly (readonly [name: string, value: string])[] {
  return [
    ...Object.entries(SESSION_SETTINGS).filter(([name]) => !name.startsWith('default_transaction_')),
    ...Object.entries(PLAN_SETTINGS),
    ['statement_timeout', String(settings.statementTimeoutMs ?? 0)],
    ['lock_timeout', String(settings.lockTimeoutMs ?? 0)],
    ['idle_in_transaction_session_timeout', String(IDLE_IN_TRANSACTION_MS)],
  ];
}

/** Options of every pool and client of the service. */
export function clientConfig(settings: DatabaseClientSettings): PoolConfig {
  const config: ServiceConfig = {
    ...parseDatabaseUrl(settings.url),
    application_name: settings.applicationName,
    connectionTimeoutMillis: settings.connectTimeoutMs,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    Client: DatabaseClient as unknown as new () => Client,
    service: settings,
  };
  return config;
}

/** Creates a single connection, not yet connected. */
export function createDatabaseClient(settings: DatabaseClientSettings): Client {
  return new DatabaseClient(clientConfig(settings) as ServiceConfig);
}

interface ServiceConfig extends PoolConfig {
  /** pg's pool passes its own options to each client. */
  readonly service: DatabaseClientSettings;
}

/** Members of pg's client that its types do not show. */
interface Wire {
  readonly stream: Writable;
  on(event: 'readyForQuery', listener: () => void): this;
  on(event: 'errorMessage', listener: (error: Error & { code?: string | undefined }) => void): this;
  once(event: 'readyForQuery' | 'end', listener: () => void): this;
}

/** pg's own methods in the form used here, which its types do not show. */
const base = Client.prototype as unknown as {
  readonly connect: (...given: unknown[]) => unknown;
  readonly query: (...given: unknown[]) => unknown;
  readonly end: (...given: unknown[]) => unknown;
  readonly getStartupConf: () => Record<string, string>;
};

/** Not among the `options`, because PostgreSQL 15 and 16 do not know the setting and would refuse the connection. */
const NO_TRANSACTION_TIMEOUT = `SELECT set_config('transaction_timeout', '0', false)
  WHERE current_setting('transaction_timeout', true) IS NOT NULL`;

/** Interval at which a client checks whether its statement got a response. */
const LOOK_EVERY_MS = 1_000;
/**
 * Number of checks between two probes of a session that listens or has a heartbeat: silence alone would not reveal a
 * dead connection.
 */
const HEARTBEAT_LOOKS = 5;

/**
 * SQLSTATEs of a server that is read-only, stopping or starting; of a failed connection; of a broken session or server;
 * of a session ended by `transaction_timeout` before that was lifted; and of prepared statements on which the session
 * and pg disagree (changed result type, missing, already exists).
 */
const UNUSABLE = /^(?:25006|08...|57P0.|XX...|25P04|0A000|26000|42P05)$/;
const READ_ONLY = '25006';
const PROTOCOL_VIOLATION = '08P01';
const CONNECTION_FAILURE = '08006';

/** The connection was closed, because its server can no longer be trusted. */
class ConnectionAbandoned extends Error {
  /** SQLSTATE as PostgreSQL would report it. */
  readonly code = CONNECTION_FAILURE;
}

/**
 * A defensive connection. It applies the settings that the code relies on, waits for a response no longer than a
 * statement may take, and closes itself when it proves read-only, broken or dead, so that its pool does not reuse it.
 */
export class DatabaseClient extends Client implements ServerSession {
  lastMessageAtMs = -Infinity;
  silentSinceMs = 0;
  /** Maximum wait for a statement's response; 0: no limit. */
  private answerLimitMs: number;
  private readonly contact: ServerContact;
  private unanswered = 0;
  private looksWithoutAnswer = 0;
  private asksWhenIdle: boolean;
  private loss: Error | null = null;

  constructor(private readonly config: ServiceConfig) {
    super(config);
    this.contact = config.service.contact ?? new ServerContact();
    this.answerLimitMs = limitOf(config.service.statementTimeoutMs ?? 0);
    this.asksWhenIdle = config.service.hasHeartbeat ?? false;
    // pg hands over a new connection before TypeORM or BullMQ listens for its errors: a FATAL in that gap would be an
    // uncaught exception and end the process. The pool replaces the lost connection by itself.
    this.on('error', () => undefined);
    const { wire } = this;
    wire.once('readyForQuery', () => this.contact.add(this));
    wire.on('readyForQuery', () => this.hear());
    wire.on('errorMessage', (error) => this.judge(error));
    const look = setInterval(() => this.look(), LOOK_EVERY_MS).unref();
    wire.once('end', () => {
      clearInterval(look);
      this.contact.remove(this);
    });
  }

  /** Settings with which it was opened. */
  get settings(): DatabaseClientSettings {
    return this.config.service;
  }

  get isBrief(): boolean {
    return this.settings.isBrief ?? false;
  }

  /** Whether a statement is waiting for its response. */
  get isWaiting(): boolean {
    return this.unanswered > 0;
  }

  /** Lets statements take as long as the session's current `statement_timeout`; null restores the initial one. */
  expectAnswersWithin(statementTimeoutMs: number | null): void {
    this.answerLimitMs = limitOf(statementTimeoutMs ?? this.settings.statementTimeoutMs ?? 0);
  }

  /** Closes the connection without notifying the server. Its statements fail with `error`, and its pool drops it. */
  abandon(error: Error): void {
    if (this.loss !== null) return;
    this.loss = error;
    this.contact.closed(this, error);
    this.wire.stream.destroy(error);
    // A client that is ending is never reused, no matter who releases it or when.
    (this as Client).end().catch(() => undefined);
    // The pool drops an idle client now; the socket's own event would follow some turns later.
    this.emit('error', error);
  }

  /**
   * Combines all writes of this turn of the event loop into one socket write, because each costs more than a statement.
   */
  joinWrites(): void {
    const { stream } = this.wire;
    stream.cork();
    process.nextTick(() => stream.uncork());
  }

  /** Same as pg's, but hands over the session only after lifting the role's transaction timeout. */
  override connect(...given: unknown[]): never {
    const [callback] = given as [((error: unknown, client?: DatabaseClient) => void)?];
    const opened = this.open();
    if (callback === undefined) return opened as never;
    opened.then(() => callback(null, this), callback);
    return undefined as never;
  }

  /** Same as pg's. If the server does not close its side, the socket is destroyed after END_LIMIT_MS. */
  override end(...given: unknown[]): never {
    const { stream } = this.wire;
    setTimeout(() => stream.destroy(), END_LIMIT_MS).unref();
    return Reflect.apply(base.end, this, given) as never;
  }

  /** Same as pg's; its overloads cannot be repeated here, so callers see a `Client`. */
  override query(...given: unknown[]): never {
    const [statement, ...rest] = given as [string | { readonly text?: string; readonly name?: string }];
    if (this.unanswered++ === 0) {
      this.looksWithoutAnswer = 0;
      this.silentSinceMs = performance.now();
    }
    const text = typeof statement === 'string' ? statement : statement.text;
    this.asksWhenIdle ||= text?.startsWith('LISTEN ') === true;
    const isUnnamed = this.settings.prepared === false && typeof statement === 'object';
    return Reflect.apply(base.query, this, [
      isUnnamed ? { ...statement, name: undefined } : statement,
      ...rest,
    ]) as never;
  }

  /** pg's start-up parameters plus the session's settings. */
  getStartupConf(): Record<string, string> {
    const own = Reflect.apply(base.getStartupConf, this, []);
    const { settings } = this;
    if (settings.isPooled) return { ...own, ...POOLED_SETTINGS };
    const options = Object.entries(settingsOfSession(settings)).map(
      ([name, value]) => `-c ${name}=${value.replaceAll(' ', '\\ ')}`,
    );
    return { ...own, ...POOLED_SETTINGS, options: [own['options'] ?? '', ...options].join(' ').trim() };
  }

  private async open(): Promise<this> {
    await (Reflect.apply(base.connect, this, []) as Promise<unknown>);
    if (this.settings.isPooled) return this;
    try {
      await (this as Client).query(NO_TRANSACTION_TIMEOUT);
      return this;
    } catch (error) {
      this.abandon(error as Error);
      // The server's message before closing is more informative.
      throw this.loss ?? error;
    }
  }

  private get wire(): Wire {
    return (this as unknown as { readonly connection: Wire }).connection;
  }

  private hear(): void {
    this.lastMessageAtMs = this.silentSinceMs = performance.now();
    this.unanswered = Math.max(0, this.unanswered - 1);
    this.looksWithoutAnswer = 0;
  }

  /**
   * Runs before pg passes the error to the caller, so that a caller who then releases the connection finds it ended.
   */
  private judge(error: Error & { code?: string | undefined }): void {
    // pg's error for bytes that are not a valid message has no code.
    error.code ??= PROTOCOL_VIOLATION;
    if (!UNUSABLE.test(error.code)) return;
    this.abandon(error);
    if (error.code === READ_ONLY)
      this.contact.closeUnused(
        new ConnectionAbandoned('another session of this process has become read-only'),
      );
  }

  /**
   * Counts checks instead of time. A process that was frozen has not read its sockets either, so the responses may have
   * arrived long ago.
   */
  private look(): void {
    if (this.unanswered === 0) {
      if (this.asksWhenIdle && ++this.looksWithoutAnswer >= HEARTBEAT_LOOKS) this.askWhetherAlive();
      return;
    }
    if (this.answerLimitMs === 0 || ++this.looksWithoutAnswer * LOOK_EVERY_MS <= this.answerLimitMs) return;
    const error = new ConnectionAbandoned(`the database has not responded for ${this.answerLimitMs} ms`);
    this.abandon(error);
    this.contact.closeUnheard(this.silentSinceMs, error);
  }

  private askWhetherAlive(): void {
    (this as Client).query('SELECT 1').catch(() => undefined);
  }
}

function limitOf(statementTimeoutMs: number): number {
  return statementTimeoutMs === 0 ? 0 : statementTimeoutMs + ANSWER_MARGIN_MS;
}
