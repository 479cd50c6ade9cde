import { Socket } from 'node:net';
import { vi } from 'vitest';
import { connections } from './receivers.js';
import { afterThisTest } from './sender.js';

export interface Canary {
  /** The same port on both loopback addresses. */
  readonly port: number;
  /** The number of connections. */
  readonly count: () => number;
}

/** Listens on 127.0.0.1 and ::1. A connection means that the guard failed. */
export async function startCanary(): Promise<Canary> {
  let count = 0;
  const onConnection = (socket: Socket): void => {
    count++;
    socket.destroy();
  };
  const port = await connections(onConnection, '127.0.0.1');
  await connections(onConnection, '::1', port);
  return { port, count: () => count };
}

/** Records the addresses that sockets of this process dial, as `address port`, where no canary can listen. */
export function watchDials(): readonly string[] {
  const dials: string[] = [];
  // eslint-disable-next-line @typescript-eslint/unbound-method -- it is called with its socket below
  const emit = Socket.prototype.emit as (...args: unknown[]) => boolean;
  const spy = vi.spyOn(Socket.prototype, 'emit').mockImplementation(function (this: Socket, ...args) {
    const [event, address, port]: readonly unknown[] = args;
    if (event === 'connectionAttempt') dials.push(`${String(address)} ${String(port)}`);
    return emit.apply(this, args);
  });
  afterThisTest(() => spy.mockRestore());
  return dials;
}
