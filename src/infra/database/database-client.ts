import type { Writable } from 'node:stream';
import { Client, type PoolConfig } from 'pg';
import { parseDatabaseUrl } from '../../config/index.js';
import { ServerContact, type ServerSession } from './server-contact.js';

/** What a connection to the database is opened with. Times in milliseconds. */
export interface DatabaseClientSettings {
  readonly url: string;
  readonly applicationName: string;
  /** The schema of all names in the session's statements. */
  readonly schema?: string;
  /** `url` leads to a pooler in transaction mode, which takes no start-up options: transactions set their limits. */
  readonly isPooled?: boolean;
  /** After this PostgreSQL cancels a statement; 0, the default: never, and the client waits as long. */
  readonly statementTimeoutMs?: number;
  /** How long a statement waits for a lock; 0, the default: as long as it may take. */
  readonly lockTimeoutMs?: number;
  /** False where a pooler in between forgets prepared statements (`DATABASE_PREPARED`). */
  readonly prepared?: boolean;
  /** How long to wait for a connection. */
  readonly connectTimeoutMs: number;
  /** Statements take milliseconds and wait for nobody's lock. */
  readonly isBrief?: boolean;
  /** The idle session sends `SELECT 1` every 5 s. If it proves dead, `contact` closes the process's other connections. */
  readonly hasHeartbeat?: boolean;
  /** The other connections of the process. */
  readonly contact?: ServerContact;
}

/** Of an idle socket, at both ends: less than what firewalls forget a connection after. */
const KEEP_ALIVE_MS = 10_000;
/** No transaction of ours waits for anything but the database. One that stands still was left behind with its locks. */
const IDLE_IN_TRANSACTION_MS = 10_000;
/** The way to the server and back may take so much longer than a statement. */
const ANSWER_MARGIN_MS = 2_000;
/** The server may take so long to close a connection that was told to end. */
const END_LIMIT_MS = 2_000;

/**
 * What the code relies on, and a database, a role or a server may set otherwise (D66): the form of values in both
 * directions, where names are looked up, and what transactions may do.
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

/** As above; poolers in transaction mode know these and set them for each client. In the form that the server reports. */
const POOLED_SETTINGS: Readonly<Record<string, string>> = {
  DateStyle: 'ISO, MDY',
  TimeZone: 'UTC',
  standard_conforming_strings: 'on',
};

/** How the server notices that this process is gone, and lets go of the locks of its sessions. */
const LIVENESS_SETTINGS: Readonly<Record<string, string>> = {
  idle_session_timeout: '0',
  idle_in_transaction_session_timeout: String(IDLE_IN_TRANSACTION_MS),
  tcp_keepalives_idle: String(KEEP_ALIVE_MS / 1_000),
  tcp_keepalives_interval: '5',
  tcp_keepalives_count: '3',
  tcp_user_timeout: '20000',
};

/** The settings that a session asks for at its start, as `options`. A pooler must not drop them. */
export function settingsOfSession(
  settings: Pick<DatabaseClientSettings, 'schema' | 'statementTimeoutMs' | 'lockTimeoutMs'>,
): Readonly<Record<string, string>> {
  return {
    ...SESSION_SETTINGS,
    ...LIVENESS_SETTINGS,
    ...(settings.schema === undefined ? {} : { search_path: settings.schema }),
    statement_timeout: String(settings.statementTimeoutMs ?? 0),
    lock_timeout: String(settings.lockTimeoutMs ?? 0),
  };
}

/** What the session's transactions set where a pooler lets the session set nothing. */
export function settingsOfTransaction(
  settings: Pick<DatabaseClientSettings, 'statementTimeoutMs' | 'lockTimeoutMs'>,
): readonly (readonly [name: string, value: string])[] {
  return [
    ...Object.entries(SESSION_SETTINGS).filter(([name]) => !name.startsWith('default_transaction_')),
    ['statement_timeout', String(settings.statementTimeoutMs ?? 0)],
    ['lock_timeout', String(settings.lockTimeoutMs ?? 0)],
    ['idle_in_transaction_session_timeout', String(IDLE_IN_TRANSACTION_MS)],
  ];
}

/** The options of a pool or a client of the service. Every connection of ours is opened with them. */
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

/** A connection of its own, not yet connected. */
export function createDatabaseClient(settings: DatabaseClientSettings): Client {
  return new DatabaseClient(clientConfig(settings) as ServiceConfig);
}

interface ServiceConfig extends PoolConfig {
  /** pg's pool hands its own options to each client. */
  readonly service: DatabaseClientSettings;
}

/** What pg's types do not show. */
interface Wire {
  readonly stream: Writable;
  on(event: 'readyForQuery', listener: () => void): this;
  on(event: 'errorMessage', listener: (error: Error & { code?: string | undefined }) => void): this;
  once(event: 'readyForQuery' | 'end', listener: () => void): this;
}

/** pg's own methods, without the overloads of the one and with the other, which its types do not show. */
const base = Client.prototype as unknown as {
  readonly connect: (...given: unknown[]) => unknown;
  readonly query: (...given: unknown[]) => unknown;
  readonly end: (...given: unknown[]) => unknown;
  readonly getStartupConf: () => Record<string, string>;
};

/** Not among the `options`: PostgreSQL 15 and 16 do not know the setting and refuse the connection. */
const NO_TRANSACTION_TIMEOUT = `SELECT set_config('transaction_timeout', '0', false)
  WHERE current_setting('transaction_timeout', true) IS NOT NULL`;

/** How often a client looks whether its statement was answered. */
const LOOK_EVERY_MS = 1_000;
/** A session that listens or has a heartbeat is asked something this often: it would not hear that it hears nothing. */
const HEARTBEAT_LOOKS = 5;

/**
 * A server that is read-only, going down or starting; a connection that failed; a session or a server that is broken;
 * a session that `transaction_timeout` ended before it was lifted; prepared statements that the session and pg do not agree on: changed result type, does not exist, exists already.
 */
const UNUSABLE = /^(?:25006|08...|57P0.|XX...|25P04|0A000|26000|42P05)$/;
const READ_ONLY = '25006';
const PROTOCOL_VIOLATION = '08P01';
const CONNECTION_FAILURE = '08006';

/** A connection that is closed, because its server is not to be trusted any more. */
class ConnectionAbandoned extends Error {
  /** As PostgreSQL would say it. */
  readonly code = CONNECTION_FAILURE;
}

/**
 * A connection that is not trusted: it sets what the code relies on, waits for no answer longer than a statement
 * may take, and ends itself when it proves read-only, broken or dead, so that its pool does not give it out again.
 */
export class DatabaseClient extends Client implements ServerSession {
  heardAtMs = -Infinity;
  silentSinceMs = 0;
  /** How long a statement may go without its answer; 0: for ever. */
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
    // pg hands a new connection over before TypeORM or BullMQ listens for its errors: a FATAL in that gap would be an
    // uncaught exception and end the process. The pool itself replaces what was lost.
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

  /** What it was opened with. */
  get settings(): DatabaseClientSettings {
    return this.config.service;
  }

  get isBrief(): boolean {
    return this.settings.isBrief ?? false;
  }

  /** Whether a statement has no answer yet. */
  get isWaiting(): boolean {
    return this.unanswered > 0;
  }

  /** Lets statements take as long as the session's `statement_timeout` of now; null: as when it was opened. */
  expectAnswersWithin(statementTimeoutMs: number | null): void {
    this.answerLimitMs = limitOf(statementTimeoutMs ?? this.settings.statementTimeoutMs ?? 0);
  }

  /** Closes the connection without a word to the server. Its statements fail with `error`; its pool drops it. */
  abandon(error: Error): void {
    if (this.loss !== null) return;
    this.loss = error;
    this.contact.closed(this, error);
    this.wire.stream.destroy(error);
    // A client that is ending is not given out again, whoever releases it and when.
    (this as Client).end().catch(() => undefined);
    // The pool drops an idle one now; the socket says it some turns later.
    this.emit('error', error);
  }

  /** What is written in this turn of the event loop becomes one write to the socket: each costs more than a statement. */
  joinWrites(): void {
    const { stream } = this.wire;
    stream.cork();
    process.nextTick(() => stream.uncork());
  }

  /** As pg's. The session is handed over once its transactions have no limit of the role's. */
  override connect(...given: unknown[]): never {
    const [callback] = given as [((error: unknown, client?: DatabaseClient) => void)?];
    const opened = this.open();
    if (callback === undefined) return opened as never;
    opened.then(() => callback(null, this), callback);
    return undefined as never;
  }

  /** As pg's. If the server does not close its side, the socket is destroyed after END_LIMIT_MS. */
  override end(...given: unknown[]): never {
    const { stream } = this.wire;
    setTimeout(() => stream.destroy(), END_LIMIT_MS).unref();
    return Reflect.apply(base.end, this, given) as never;
  }

  /** As pg's; its overloads cannot be written down again, so whoever calls it sees a `Client`. */
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

  /** What pg writes into its first packet, and the settings of the session. */
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
      // What the server said before it closed the connection tells more.
      throw this.loss ?? error;
    }
  }

  private get wire(): Wire {
    return (this as unknown as { readonly connection: Wire }).connection;
  }

  private hear(): void {
    this.heardAtMs = this.silentSinceMs = performance.now();
    this.unanswered = Math.max(0, this.unanswered - 1);
    this.looksWithoutAnswer = 0;
  }

  /** Before pg hands the error to whoever waits for the statement: who then releases the connection finds it ended. */
  private judge(error: Error & { code?: string | undefined }): void {
    // pg says so, without a code, of bytes that are no message.
    error.code ??= PROTOCOL_VIOLATION;
    if (!UNUSABLE.test(error.code)) return;
    this.abandon(error);
    if (error.code === READ_ONLY)
      this.contact.closeUnused(
        new ConnectionAbandoned('another session of the process has become read-only'),
      );
  }

  /**
   * Counts looks, not time: a process that stood still has not read its sockets either, and its statements may have been
   * answered long ago.
   */
  private look(): void {
    if (this.unanswered === 0) {
      if (this.asksWhenIdle && ++this.looksWithoutAnswer >= HEARTBEAT_LOOKS) this.askWhetherAlive();
      return;
    }
    if (this.answerLimitMs === 0 || ++this.looksWithoutAnswer * LOOK_EVERY_MS <= this.answerLimitMs) return;
    const error = new ConnectionAbandoned(`the database has not answered for ${this.answerLimitMs} ms`);
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
