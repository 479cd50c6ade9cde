/** An open session. */
export interface ServerSession {
  /** Whether a statement has no answer yet. */
  readonly isWaiting: boolean;
  /** When the server answered last (`performance.now`). */
  readonly heardAtMs: number;
  /** `I` outside of a transaction. */
  getTransactionStatus(): string | null;
  /** Closes the connection without a word to the server. */
  abandon(error: Error): void;
}

/** A server that is a standby refuses every session: connect to it again this often, not with each call. */
const PAUSE_MS = 5_000;

/**
 * The open sessions of a process, all with the same server. One that proves dead or read-only says something about
 * those that are as old: a firewall forgets all of its connections at once, and a failover leaves all sessions behind.
 */
export class ServerContact {
  private readonly clients = new Set<ServerSession>();
  private heardAtMs = -Infinity;
  private closedOthersAtMs = -Infinity;

  /** @param report is told why a connection was closed */
  constructor(private readonly report: (error: Error) => void = () => undefined) {}

  add(client: ServerSession): void {
    this.clients.add(client);
  }

  remove(client: ServerSession): void {
    this.clients.delete(client);
  }

  /** The server has answered one of the sessions: now, as `performance.now()` has it. */
  heard(): number {
    return (this.heardAtMs = performance.now());
  }

  /** A client ends itself; nobody has to know of one that was not connected yet. */
  closed(client: ServerSession, error: Error): void {
    if (this.clients.delete(client)) this.report(error);
  }

  /** Whether sessions wait for an answer, and none of them got any for `ms`. */
  isSilentFor(ms: number): boolean {
    const isWaiting = [...this.clients].some((client) => client.isWaiting);
    return isWaiting && performance.now() - this.heardAtMs >= ms;
  }

  /** Closes the sessions that have not been heard since `sinceMs` (`performance.now`), when one of them proved dead. */
  closeUnheard(sinceMs: number, error: Error): void {
    this.closeAll(error, (client) => client.heardAtMs < sinceMs);
  }

  /** Closes the sessions that nobody works with, when one of them proved read-only. */
  closeUnused(error: Error): void {
    this.closeAll(error, (client) => !client.isWaiting && client.getTransactionStatus() === 'I');
  }

  private closeAll(error: Error, which: (client: ServerSession) => boolean): void {
    const nowMs = performance.now();
    if (nowMs - this.closedOthersAtMs < PAUSE_MS) return;
    this.closedOthersAtMs = nowMs;
    for (const client of [...this.clients].filter(which)) client.abandon(error);
  }
}
