import type { ClientRequest } from 'node:http';
import { isIP, type Socket } from 'node:net';
import type { AttemptPhases } from './finished-attempt.js';

type Phase = 'dns' | 'connect' | 'tls';

/**
 * Times one attempt by the events of its socket. A phase in which the attempt failed or was cut has the time until
 * then; a phase that was not reached has none.
 */
export class PhaseClock {
  /** Monotonic milliseconds. */
  readonly startedAt = performance.now();
  private readonly took: Record<Phase, number | null> = { dns: null, connect: null, tls: null };
  private running: Phase | null = null;
  private since = this.startedAt;
  private firstByteMs: number | null = null;
  private reused = false;

  /** The request went over a connection that an earlier one had left open. */
  get reusedConnection(): boolean {
    return this.reused;
  }

  /** Call in the turn that made the request: the socket's events may come in the next one. */
  watch(request: ClientRequest, target: URL): void {
    request.once('socket', (socket) => {
      // Before Node's own listener, which emits the response.
      socket.prependOnceListener('data', () => (this.firstByteMs = this.elapsedMs()));
      if (request.reusedSocket) this.reused = true;
      else this.watchConnecting(socket, target);
    });
  }

  /** Closes the phase that is running. @param endedAt monotonic milliseconds */
  stop(endedAt: number): AttemptPhases {
    this.enter(null, endedAt);
    const { dns: dnsMs, connect: connectMs, tls: tlsMs } = this.took;
    return { dnsMs, connectMs, tlsMs, firstByteMs: this.firstByteMs, totalMs: endedAt - this.startedAt };
  }

  private watchConnecting(socket: Socket, target: URL): void {
    // Nobody looks up a literal, which is a target in development only. By now the socket has begun.
    const isLiteral = isIP(target.hostname.replace(/^\[|\]$/g, '')) !== 0;
    this.enter(isLiteral ? 'connect' : 'dns', this.startedAt);
    socket.once('lookup', (error: Error | null) => this.enter(error ? null : 'connect'));
    socket.once('connect', () => this.enter(target.protocol === 'https:' ? 'tls' : null));
    socket.once('secureConnect', () => this.enter(null));
  }

  private enter(next: Phase | null, at = performance.now()): void {
    if (this.running) this.took[this.running] = at - this.since;
    this.running = next;
    this.since = at;
  }

  private elapsedMs(): number {
    return performance.now() - this.startedAt;
  }
}
