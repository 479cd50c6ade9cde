import type { Client, Pool } from 'pg';
import type { Logger } from 'pino';
import { createDatabaseClient, type ServerContact } from '../../database/index.js';
import { FIRST_PAUSE_MS, MAX_PAUSE_MS, SIGNAL_CHANNEL, type SignalChannel } from './signal-channel.js';

const CONNECT_TIMEOUT_MS = 5_000;
const STATEMENT_TIMEOUT_MS = 5_000;

export interface PostgresChannelOptions {
  /** Pool for sending; any connection works, including a pooler's. */
  readonly pool: Pool;
  /** URL for LISTEN: a direct connection to the server, because a pooler in transaction mode drops it. */
  readonly listenUrl: string;
  readonly logger: Logger;
  readonly contact: ServerContact;
}

/**
 * NOTIFY and LISTEN (D51). Sends outside every business transaction, because transactions that notify commit one by
 * one, each with its own disk write.
 */
export class PostgresChannel implements SignalChannel {
  private onMessage: (text: string) => void = () => undefined;
  private client: Client | null = null;
  private timer: NodeJS.Timeout | null = null;
  private pauseMs = FIRST_PAUSE_MS;
  private isClosed = false;

  constructor(private readonly options: PostgresChannelOptions) {}

  async send(text: string): Promise<void> {
    await this.options.pool.query(`SELECT pg_notify('${SIGNAL_CHANNEL}', $1)`, [text]);
  }

  listen(onMessage: (text: string) => void): void {
    this.onMessage = onMessage;
    void this.connect();
  }

  async close(): Promise<void> {
    this.isClosed = true;
    if (this.timer) clearTimeout(this.timer);
    const { client } = this;
    this.client = null;
    await client?.end().catch(() => undefined);
  }

  /** Never rejects: a failed connection is retried. */
  private async connect(): Promise<void> {
    const client = createDatabaseClient({
      url: this.options.listenUrl,
      applicationName: 'partner-esim-signals',
      statementTimeoutMs: STATEMENT_TIMEOUT_MS,
      connectTimeoutMs: CONNECT_TIMEOUT_MS,
      contact: this.options.contact,
    });
    this.client = client;
    client.on('notification', ({ payload }) => this.onMessage(payload ?? ''));
    // pg emits both for one lost connection; `lost` acts on the first.
    client.on('error', (error) => this.lost(client, error));
    client.on('end', () => this.lost(client, null));
    try {
      await client.connect();
      await client.query(`LISTEN ${SIGNAL_CHANNEL}`);
      this.pauseMs = FIRST_PAUSE_MS;
    } catch (error) {
      this.lost(client, error);
    }
  }

  private lost(client: Client, error: unknown): void {
    if (this.client !== client || this.isClosed) return;
    this.client = null;
    client.end().catch(() => undefined);
    this.options.logger.warn(
      { event: 'signals.connection_lost', err: error, retryMs: this.pauseMs },
      'LISTEN connection lost; falling back to polling',
    );
    this.timer = setTimeout(() => void this.connect(), this.pauseMs);
    this.pauseMs = Math.min(this.pauseMs * 2, MAX_PAUSE_MS);
  }
}
