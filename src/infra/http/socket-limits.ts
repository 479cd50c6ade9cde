import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { callerNetwork } from '../network/ip-address.js';

/**
 * Reasons for closing a connection: its caller read no bytes, its address has too many connections, the port has too
 * many, or another caller needs its place.
 */
export const CUT_REASONS = ['write_timeout', 'address_limit', 'port_limit', 'evicted'] as const;
export type CutReason = (typeof CUT_REASONS)[number];

export interface SocketLimits {
  /** How long a caller may leave response bytes unread, in milliseconds. */
  readonly writeTimeoutMs: number;
  readonly maxConnections: number;
  /**
   * Maximum connections per address (an IPv6 /64 counts as one); null behind a proxy, whose address all callers share.
   */
  readonly maxConnectionsPerAddress: number | null;
  onCut?(reason: CutReason): void;
}

export const DEFAULT_SOCKET_LIMITS: SocketLimits = {
  writeTimeoutMs: 20_000,
  maxConnections: 4_096,
  maxConnectionsPerAddress: 2_048,
};

const LOOKS_PER_TIMEOUT = 4;
const MAX_LOOK_MS = 5_000;

interface Watched {
  readonly network: string;
  progress: WriteProgress;
  /** Start of the current value of `progress`; monotonic milliseconds. */
  sinceMs: number;
}

/** Progress of a socket's writes. */
interface WriteProgress {
  /** Bytes of finished writes. */
  readonly written: number;
  /** Bytes of the current write that the kernel has not taken. */
  readonly queued: number;
  /** Waiting bytes in total. */
  readonly pending: number;
}

/**
 * Keeps one caller from holding a port's sockets (D43). A connection whose caller reads no byte within the write
 * timeout is reset, which frees up to 4 MB of kernel memory. Connections are limited in total and per address. When
 * there are too many, an idle one of the address with the most connections, or of the caller's own address, is closed.
 */
export function limitSockets(
  server: Server,
  limits: SocketLimits,
  isIdle: (socket: Socket) => boolean,
): void {
  const guard = new SocketGuard(limits, isIdle);
  server.on('connection', (socket: Socket) => guard.take(socket));
  const everyMs = Math.min(MAX_LOOK_MS, Math.ceil(limits.writeTimeoutMs / LOOKS_PER_TIMEOUT));
  const timer = setInterval(() => guard.cutStalled(performance.now()), everyMs).unref();
  server.once('close', () => clearInterval(timer));
}

class SocketGuard {
  /** In order of arrival. */
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

  /**
   * Closes the oldest idle connection of the address with the most connections, or of the caller's own if none has
   * more.
   */
  private makeRoomFor(network: string): boolean {
    const count = this.counts.get(network) ?? 0;
    const [busiest, most] = [...this.counts].reduce((a, b) => (b[1] > a[1] ? b : a), ['', 0] as const);
    return (most > count + 1 && this.evictIdleOf(busiest)) || this.evictIdleOf(network);
  }

  /** Many callers may share an address (a load balancer, a NAT): an idle one makes room for the next. */
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
 * Node reports a write only when it has ended, and a large response is one write. The kernel's progress is in the
 * handle, which Node's own socket timeout reads too.
 */
function progressOf(socket: Socket): WriteProgress {
  const pending = socket.writableLength;
  const handle = (socket as { _handle?: { writeQueueSize?: number } | null })._handle;
  return { written: socket.bytesWritten - pending, queued: handle?.writeQueueSize ?? 0, pending };
}
