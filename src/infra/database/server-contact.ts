/** An open session. Times are those of `performance.now`. */
export interface ServerSession {
  /** Its statements take milliseconds and never wait for locks, so a waiting one reveals a problem of the server. */
  readonly isBrief: boolean;
  /** Whether a statement is waiting for its response. */
  readonly isWaiting: boolean;
  /** Start of the oldest wait for a response; meaningless while nothing waits. */
  readonly silentSinceMs: number;
  /** Time of the server's last response. */
  readonly lastMessageAtMs: number;
  /** `I` outside a transaction. */
  getTransactionStatus(): string | null;
  /** Closes the connection without notifying the server. */
  abandon(error: Error): void;
}

/**
 * Interval for replacing sessions when all of them are read-only, as on a standby, so that not every call replaces
 * them.
 */
const REPLACE_EVERY_MS = 5_000;
/** After connections were lost, the calls that waited for them may queue up for this long. */
const AFTERMATH_MS = 10_000;

/**
 * All open sessions of a process with the same server. If one proves dead or read-only, the others probably are too: a
 * firewall drops all connections at once, and a failover invalidates all sessions.
 */
export class ServerContact {
  private readonly clients = new Set<ServerSession>();
  private replacedAtMs = -Infinity;
  private lostAtMs = -Infinity;
  private onEmpty: () => void = () => undefined;

  /** @param report receives the reason for closing a connection */
  constructor(private readonly report: (error: Error) => void = () => undefined) {}

  add(client: ServerSession): void {
    this.clients.add(client);
  }

  remove(client: ServerSession): void {
    this.clients.delete(client);
    if (this.clients.size === 0) this.onEmpty();
  }

  /** Resolves when no session is open. An ended pg pool may still have sockets that are closing. */
  async allClosed(): Promise<void> {
    if (this.clients.size === 0) return;
    await new Promise<void>((resolve) => (this.onEmpty = resolve));
  }

  /** Called by a client that closes itself; one that never connected is ignored. */
  closed(client: ServerSession, error: Error): void {
    if (!this.clients.has(client)) return;
    this.remove(client);
    this.report(error);
  }

  /**
   * Whether calls queue up for lack of responses: connections were lost recently, or a brief statement has waited for
   * `ms`.
   */
  isDisturbed(ms: number): boolean {
    const nowMs = performance.now();
    if (nowMs - this.lostAtMs < AFTERMATH_MS) return true;
    return [...this.clients].some(
      (each) => each.isBrief && each.isWaiting && nowMs - each.silentSinceMs >= ms,
    );
  }

  /** Closes the sessions without a response since `sinceMs`, after one of them proved dead. */
  closeUnheard(sinceMs: number, error: Error): void {
    this.lostAtMs = performance.now();
    this.closeAll(error, (client) => client.lastMessageAtMs < sinceMs);
  }

  /** Closes the idle sessions, after one of them proved read-only. */
  closeUnused(error: Error): void {
    const nowMs = performance.now();
    if (nowMs - this.replacedAtMs < REPLACE_EVERY_MS) return;
    this.replacedAtMs = nowMs;
    this.closeAll(error, (client) => !client.isWaiting && client.getTransactionStatus() === 'I');
  }

  private closeAll(error: Error, which: (client: ServerSession) => boolean): void {
    for (const client of [...this.clients].filter(which)) client.abandon(error);
  }
}
