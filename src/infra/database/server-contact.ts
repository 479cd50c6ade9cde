/** An open session. Times are those of `performance.now`. */
export interface ServerSession {
  /** Its statements take milliseconds and wait for nobody's lock: that one waits says something about the server. */
  readonly isBrief: boolean;
  /** Whether a statement has no answer yet. */
  readonly isWaiting: boolean;
  /** Since when the statement that is next to be answered waits; of no meaning while none does. */
  readonly silentSinceMs: number;
  /** When the server answered last. */
  readonly heardAtMs: number;
  /** `I` outside of a transaction. */
  getTransactionStatus(): string | null;
  /** Closes the connection without a word to the server. */
  abandon(error: Error): void;
}

/** Where every session is read-only, as on a standby, all are replaced this often and not with each call. */
const REPLACE_EVERY_MS = 5_000;
/** For how long calls that have waited for lost connections are in each other's way. */
const AFTERMATH_MS = 10_000;

/**
 * The open sessions of a process, all with the same server. One that proves dead or read-only says something about
 * those that are as old: a firewall forgets all of its connections at once, and a failover leaves all sessions behind.
 */
export class ServerContact {
  private readonly clients = new Set<ServerSession>();
  private replacedAtMs = -Infinity;
  private lostAtMs = -Infinity;
  private onEmpty: () => void = () => undefined;

  /** @param report is told why a connection was closed */
  constructor(private readonly report: (error: Error) => void = () => undefined) {}

  add(client: ServerSession): void {
    this.clients.add(client);
  }

  remove(client: ServerSession): void {
    this.clients.delete(client);
    if (this.clients.size === 0) this.onEmpty();
  }

  /** Resolves when no session is open any more. A pool of pg that has ended may still have sockets that are closing. */
  async allClosed(): Promise<void> {
    if (this.clients.size === 0) return;
    await new Promise<void>((resolve) => (this.onEmpty = resolve));
  }

  /** A client ends itself; nobody has to know of one that was not connected yet. */
  closed(client: ServerSession, error: Error): void {
    if (!this.clients.has(client)) return;
    this.remove(client);
    this.report(error);
  }

  /**
   * Whether calls queue up for want of an answer: connections were lost a moment ago, or a brief statement has waited
   * for `ms`.
   */
  isDisturbed(ms: number): boolean {
    const nowMs = performance.now();
    if (nowMs - this.lostAtMs < AFTERMATH_MS) return true;
    return [...this.clients].some(
      (each) => each.isBrief && each.isWaiting && nowMs - each.silentSinceMs >= ms,
    );
  }

  /** Closes the sessions that have not been heard since `sinceMs`, when one of them proved dead. */
  closeUnheard(sinceMs: number, error: Error): void {
    this.lostAtMs = performance.now();
    this.closeAll(error, (client) => client.heardAtMs < sinceMs);
  }

  /** Closes the sessions that nobody works with, when one of them proved read-only. */
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
