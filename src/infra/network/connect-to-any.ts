import type { LookupAddress } from 'node:dns';
import { connect, type Socket } from 'node:net';

/** Delay before the next address is tried in parallel (RFC 8305 section 5). */
const NEXT_ADDRESS_MS = 250;
const MAX_AT_ONCE = 4;
/** Minimum time for an address before another takes its place: the kernel repeats a lost SYN after one second. */
const MIN_PER_ADDRESS_MS = 3_000;
/** Further addresses are ignored. */
export const MAX_ADDRESSES = 20;

/**
 * Connects to the first of `addresses` that accepts, and closes all other attempts. The families take turns, starting
 * with the first address. The last addresses are tried until `signal` aborts: the caller's timeout is the only one.
 * @throws the error of the first address, when all have failed; the reason of `signal` when it aborts
 */
export async function connectToAny(
  addresses: readonly LookupAddress[],
  port: number,
  signal: AbortSignal,
): Promise<Socket> {
  signal.throwIfAborted();
  const race = new ConnectionRace(inTurns(addresses).slice(0, MAX_ADDRESSES), port);
  const onAbort = (): void => race.fail(signal.reason as Error);
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await race.won;
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

class ConnectionRace {
  readonly won: Promise<Socket>;
  private settle!: { resolve: (socket: Socket) => void; reject: (error: Error) => void };
  /** Oldest first. */
  private readonly underWay = new Map<Socket, { readonly place: number; readonly startedAt: number }>();
  private readonly errors: Error[] = [];
  private next = 0;
  private timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly addresses: readonly LookupAddress[],
    private readonly port: number,
  ) {
    this.won = new Promise((resolve, reject) => (this.settle = { resolve, reject }));
    this.tryNext();
  }

  fail(error: Error): void {
    this.end();
    this.settle.reject(error);
  }

  private tryNext(): void {
    clearTimeout(this.timer);
    const place = this.next++;
    if (place < this.addresses.length) this.tryAddress(place);
    else if (this.underWay.size === 0)
      this.fail(this.errors.find((error) => error !== undefined) ?? new Error('no address'));
    if (this.next < this.addresses.length) this.timer = setTimeout(() => this.tryNext(), this.waitMs());
  }

  private tryAddress(place: number): void {
    const [oldest] = this.underWay.keys();
    if (oldest && this.underWay.size === MAX_AT_ONCE) this.giveUp(oldest, timedOut());
    const socket = connect({ host: this.addresses[place]!.address, port: this.port, noDelay: true });
    this.underWay.set(socket, { place, startedAt: performance.now() });
    socket.once('connect', () => this.win(socket));
    socket.once('error', (error) => {
      this.giveUp(socket, error);
      this.tryNext();
    });
  }

  /** Milliseconds until the next address may be tried. */
  private waitMs(): number {
    const [oldest] = this.underWay.values();
    if (!oldest || this.underWay.size < MAX_AT_ONCE) return NEXT_ADDRESS_MS;
    return Math.max(NEXT_ADDRESS_MS, oldest.startedAt + MIN_PER_ADDRESS_MS - performance.now());
  }

  private win(socket: Socket): void {
    this.underWay.delete(socket);
    socket.removeAllListeners('error');
    this.end();
    this.settle.resolve(socket);
  }

  private giveUp(socket: Socket, error: Error): void {
    this.errors[this.underWay.get(socket)?.place ?? 0] = error;
    this.underWay.delete(socket);
    drop(socket);
  }

  private end(): void {
    clearTimeout(this.timer);
    for (const socket of this.underWay.keys()) drop(socket);
    this.underWay.clear();
    this.next = this.addresses.length;
  }
}

function drop(socket: Socket): void {
  socket.removeAllListeners();
  socket.on('error', () => undefined);
  socket.destroy();
}

function timedOut(): Error {
  return Object.assign(new Error('connect timed out'), { code: 'ETIMEDOUT' });
}

/** Alternates between the families. */
function inTurns(addresses: readonly LookupAddress[]): readonly LookupAddress[] {
  const first = addresses.filter(({ family }) => family === addresses[0]?.family);
  const other = addresses.filter(({ family }) => family !== addresses[0]?.family);
  const pairs = Math.max(first.length, other.length);
  return Array.from({ length: pairs }, (_, place) => [first[place], other[place]])
    .flat()
    .filter((address) => address !== undefined);
}
