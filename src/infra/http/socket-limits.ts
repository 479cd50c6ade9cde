import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { callerNetwork } from '../network/ip-address.js';

/**
 * Why a connection was cut: it took no byte of its answers, its address has too many, the port has too many, or another
 * caller needs its place.
 */
export const CUT_REASONS = ['write_timeout', 'address_limit', 'port_limit', 'evicted'] as const;
export type CutReason = (typeof CUT_REASONS)[number];

export interface SocketLimits {
  /** For how long a caller may leave bytes of its answers untaken, in milliseconds. */
  readonly writeTimeoutMs: number;
  /** Connections of the port at once. */
  readonly maxConnections: number;
  /** Connections of one address (an IPv6 /64 is one); null behind a proxy, whose address is everybody's. */
  readonly maxConnectionsPerAddress: number | null;
  onCut?(reason: CutReason): void;
}

export const DEFAULT_SOCKET_LIMITS: SocketLimits = {
  writeTimeoutMs: 20_000,
  maxConnections: 4_096,
  maxConnectionsPerAddress: 2_048,
};

const LOOKS_PER_TIMEOUT = 4;
const LONGEST_LOOK_MS = 5_000;

interface Watched {
  readonly network: string;
  progress: WriteProgress;
  /** Since when `progress` is as it is; monotonic milliseconds. */
  sinceMs: number;
}

/** How far a socket's writes have come. */
interface WriteProgress {
  /** Bytes of the writes that have ended. */
  readonly written: number;
  /** Bytes of the write under way that the kernel has not taken. */
  readonly queued: number;
  /** Bytes that wait in all. */
  readonly pending: number;
}

/**
 * Keeps one caller from holding the sockets of a port (D43). A connection whose caller takes no byte for the write
 * time-out is reset: its kernel memory, up to 4 MB, is free at once. Connections are bounded, also for each address; when
 * there are too many, an idle one of the address that has the most, or of the caller's own, makes room.
 */
export function limitSockets(
  server: Server,
  limits: SocketLimits,
  isIdle: (socket: Socket) => boolean,
): void {
  const guard = new SocketGuard(limits, isIdle);
  server.on('connection', (socket: Socket) => guard.take(socket));
  const everyMs = Math.min(LONGEST_LOOK_MS, Math.ceil(limits.writeTimeoutMs / LOOKS_PER_TIMEOUT));
  const timer = setInterval(() => guard.cutStalled(performance.now()), everyMs).unref();
  server.once('close', () => clearInterval(timer));
}

class SocketGuard {
  /** In the order of their arrival. */
  private readonly sockets = new Map<Socket, Watched>();
  private readonly counts = new Map<string, number>();

  constructor(
    private readonly limits: SocketLimits,
    private readonly isIdle: (socket: Socket) => boolean,
  ) {}

  take(socket: Socket): void {
    const { maxConnections, maxConnectionsPerAddress } = this.limits;
    const network = callerNetwork(socket.remoteAddress ?? '');
    const count = this.counts.get(network) ?? 0;
    if (count >= (maxConnectionsPerAddress ?? Infinity) && !this.evictIdleOf(network))
      return this.cut(socket, 'address_limit');
    if (this.sockets.size >= maxConnections && !this.makeRoomFor(network))
      return this.cut(socket, 'port_limit');
    this.counts.set(network, (this.counts.get(network) ?? 0) + 1);
    this.sockets.set(socket, { network, progress: progressOf(socket), sinceMs: performance.now() });
    socket.once('close', () => this.forget(socket));
  }

  /** @param nowMs monotonic milliseconds */
  cutStalled(nowMs: number): void {
    for (const [socket, watched] of this.sockets) {
      const progress = progressOf(socket);
      const { progress: before, sinceMs } = watched;
      const isStalled =
        progress.pending > 0 && progress.written === before.written && progress.queued === before.queued;
      if (isStalled && nowMs - sinceMs >= this.limits.writeTimeoutMs) this.cut(socket, 'write_timeout');
      else if (!isStalled) Object.assign(watched, { progress, sinceMs: nowMs });
    }
  }

  /** Cuts the oldest idle connection of the address that has the most, or of the caller's own when none has more. */
  private makeRoomFor(network: string): boolean {
    const count = this.counts.get(network) ?? 0;
    const [busiest, most] = [...this.counts].reduce((a, b) => (b[1] > a[1] ? b : a), ['', 0] as const);
    return (most > count + 1 && this.evictIdleOf(busiest)) || this.evictIdleOf(network);
  }

  /** Many callers may share an address (a balancer, a NAT): one that idles makes room for the next. */
  private evictIdleOf(network: string): boolean {
    for (const [socket, watched] of this.sockets) {
      if (watched.network !== network || !this.isIdle(socket)) continue;
      this.cut(socket, 'evicted');
      this.forget(socket);
      return true;
    }
    return false;
  }

  private cut(socket: Socket, reason: CutReason): void {
    socket.resetAndDestroy();
    this.limits.onCut?.(reason);
  }

  private forget(socket: Socket): void {
    const watched = this.sockets.get(socket);
    if (!watched) return;
    this.sockets.delete(socket);
    const count = this.counts.get(watched.network)! - 1;
    if (count > 0) this.counts.set(watched.network, count);
    else this.counts.delete(watched.network);
  }
}

/**
 * Node tells of a write only when it has ended; a large answer is one. How much of it the kernel has taken is in the
 * handle, where Node's own socket time-out looks, too.
 */
function progressOf(socket: Socket): WriteProgress {
  const pending = socket.writableLength;
  const handle = (socket as { _handle?: { writeQueueSize?: number } | null })._handle;
  return { written: socket.bytesWritten - pending, queued: handle?.writeQueueSize ?? 0, pending };
}
