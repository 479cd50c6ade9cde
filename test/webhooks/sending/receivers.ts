import { once } from 'node:events';
import { createServer as createHttpServer, type RequestListener } from 'node:http';
import { createServer as createHttpsServer, type ServerOptions } from 'node:https';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { afterThisTest } from './sender.js';

/** Listens until the end of the test and returns the port. */
export async function listen(server: Server, address = '127.0.0.1', port = 0): Promise<number> {
  server.listen(port, address);
  await once(server, 'listening');
  afterThisTest(() => server.close());
  return (server.address() as AddressInfo).port;
}

/** Starts an HTTP receiver and returns its URL. */
export async function http(listener: RequestListener): Promise<string> {
  const server = createHttpServer(listener);
  afterThisTest(() => server.closeAllConnections());
  return `http://127.0.0.1:${await listen(server)}/hook`;
}

/** Starts a TLS receiver and returns its port. */
export async function https(options: ServerOptions, listener: RequestListener): Promise<number> {
  const server = createHttpsServer(options, listener);
  server.on('tlsClientError', () => undefined);
  afterThisTest(() => server.closeAllConnections());
  return listen(server);
}

/** Accepts raw connections, and destroys the remaining ones after the test. */
export async function connections(
  onConnection: (socket: Socket) => void,
  address?: string,
  port?: number,
): Promise<number> {
  const sockets = new Set<Socket>();
  afterThisTest(() => sockets.forEach((socket) => socket.destroy()));
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => undefined);
    onConnection(socket);
  });
  return listen(server, address, port);
}

/** Starts a receiver that writes raw bytes after the first input of each connection, and returns its URL. */
export async function raw(onRequest: (socket: Socket) => void): Promise<string> {
  const port = await connections((socket) => socket.once('data', () => onRequest(socket)));
  return `http://127.0.0.1:${port}/hook`;
}

/** Writes `head`, then `byte` repeatedly until the connection ends. */
export function drip(socket: Socket, head: string, byte: string, everyMs = 20): void {
  socket.write(head);
  const timer = setInterval(() => socket.write(byte), everyMs);
  socket.on('close', () => clearInterval(timer));
}

/** Writes `chunk` as fast as the peer reads, until the connection ends. Returns the count of written bytes. */
export function flood(socket: Socket, chunk: string | Buffer): { bytes: number } {
  const written = { bytes: 0 };
  const more = (): void => {
    while (!socket.destroyed) {
      written.bytes += chunk.length;
      if (!socket.write(chunk)) return void socket.once('drain', more);
    }
  };
  more();
  return written;
}
