import { once } from 'node:events';
import type { Server } from 'node:http';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { DEFAULT_SOCKET_LIMITS, type SocketLimits } from '../../../src/infra/http/socket-limits.js';
import { Behavior, startEdgeApp, type EdgeApp } from './edge-app.js';
import { RawClient, request, until } from './raw-client.js';

const WRITE_TIMEOUT_MS = 600;
/** More than the kernel buffers for a caller that never reads. */
const LARGE = 'x'.repeat(16_000_000);

const ended: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ended.splice(0).reverse()) await end();
});

async function startEdge(limits: Partial<SocketLimits>, closeWithinMs?: number): Promise<EdgeApp> {
  const socketLimits = { ...DEFAULT_SOCKET_LIMITS, ...limits };
  const edge = await startEdgeApp({
    socketLimits,
    ...(closeWithinMs === undefined ? {} : { closeWithinMs: () => closeWithinMs }),
  });
  ended.push(() => edge.close());
  return edge;
}

/** A socket that sends and does not read until it is resumed. */
async function deaf(port: number, bytes: Buffer): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  ended.push(() => socket.destroy());
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  socket.pause();
  socket.write(bytes);
  return socket;
}

const connectionsOf = (server: Server): Promise<number> =>
  new Promise((resolve, reject) =>
    server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
  );
const serverOf = (edge: EdgeApp): Server => edge.app.getHttpServer();

describe('a caller that never reads (D43)', () => {
  it('loses its connection after the write timeout, its calls are recorded, and others are served', async () => {
    const cuts: string[] = [];
    const edge = await startEdge({
      writeTimeoutMs: WRITE_TIMEOUT_MS,
      onCut: (reason) => void cuts.push(reason),
    });
    edge.behavior.thing = ({ headers }) => (headers['x-small'] ? Behavior.plain() : { large: LARGE });
    const pipelined = Buffer.concat(Array.from({ length: 3 }, () => request()));
    for (let i = 0; i < 10; i++) await deaf(edge.port, pipelined);
    // On a busy machine a connection is cut before all of its calls were read.
    await until(() => edge.seen.length >= 10);
    const small = request({ headers: { 'x-small': 'yes' } });
    expect((await new RawClient(edge.port).write(small).answer()).status).toBe(200);
    await until(() => cuts.length === 10);
    expect(new Set(cuts)).toEqual(new Set(['write_timeout']));
    await until(() => edge.records.filter(({ status }) => status === 499).length >= 10);
  });

  it('is distinguished from a slow reader, which gets all of a large response', async () => {
    // The kernel accepts large pieces: at 2.5 MB/s the write progresses every 640 ms.
    const writeTimeoutMs = 5_000;
    const edge = await startEdge({ writeTimeoutMs });
    edge.behavior.thing = () => ({ large: LARGE });
    const socket = await deaf(edge.port, request({ headers: { connection: 'close' } }));
    const began = performance.now();
    let received = 0;
    socket.on('data', (chunk: Buffer) => {
      received += chunk.length;
      socket.pause();
      setTimeout(() => socket.resume(), chunk.length / 2_500).unref();
    });
    socket.resume();
    await once(socket, 'close');
    expect(received).toBeGreaterThan(LARGE.length);
    expect(performance.now() - began).toBeGreaterThan(writeTimeoutMs);
  });

  it('is distinguished from a caller whose response takes long to compute', async () => {
    const edge = await startEdge({ writeTimeoutMs: 100 });
    edge.behavior.thing = async () => {
      await sleep(800);
      return { slow: true };
    };
    expect((await new RawClient(edge.port).write(request()).answer()).body).toBe('{"slow":true}');
  });

  it('does not delay a close beyond its time limit', async () => {
    const edge = await startEdge({ writeTimeoutMs: 600_000 }, 500);
    edge.behavior.thing = () => ({ large: 'x'.repeat(100_000) });
    // The last request is incomplete, so Node treats the connection as active.
    const whole = Array.from({ length: 200 }, () => request());
    const pipelined = Buffer.concat([...whole, request().subarray(0, 20)]);
    for (let i = 0; i < 5; i++) await deaf(edge.port, pipelined);
    await until(() => edge.seen.length >= 5 * 8);
    edge.behavior.thing = Behavior.plain;
    const began = performance.now();
    await edge.close();
    expect(performance.now() - began).toBeLessThan(8_000);
    await until(() => edge.records.filter(({ status }) => status === 499).length >= 5 * 8);
  });
});

describe('a connection with pipelined calls (D43)', () => {
  it('serves eight calls at a time and in order, however many there are', async () => {
    const edge = await startEdge({});
    const first = Promise.withResolvers<void>();
    let served = 0;
    edge.behavior.thing = async () => {
      const nth = served++;
      await first.promise;
      return { nth };
    };
    const calls = 200;
    const client = new RawClient(edge.port).write(
      Buffer.concat(Array.from({ length: calls }, () => request())),
    );
    await until(() => served === 8);
    await sleep(100);
    expect(served).toBe(8);
    first.resolve();
    const answers = await client.answers(calls, 20_000);
    expect(answers.map(({ body }) => body)).toEqual(
      Array.from({ length: calls }, (_, nth) => `{"nth":${nth}}`),
    );
    expect(edge.records).toHaveLength(calls);
  });

  it('ends when there are far too many calls', async () => {
    const edge = await startEdge({});
    edge.behavior.thing = () => new Promise(() => undefined);
    const client = new RawClient(edge.port).write(
      Buffer.concat(Array.from({ length: 1_000 }, () => request())),
    );
    await client.closed();
    expect(edge.seen.length).toBeLessThanOrEqual(8);
  });
});

describe('the connection limit', () => {
  it('evicts an idle connection of the same address, and closes the new one while all are busy', async () => {
    const cuts: string[] = [];
    const edge = await startEdge({ maxConnectionsPerAddress: 3, onCut: (reason) => void cuts.push(reason) });
    const clients = Array.from({ length: 3 }, () => new RawClient(edge.port));
    for (const client of clients) expect((await client.write(request()).answer()).status).toBe(200);
    const next = new RawClient(edge.port).write(request());
    expect((await next.answer()).status).toBe(200);
    expect(cuts).toEqual(['evicted']);
    await clients[0]!.closed();
    const done = Promise.withResolvers<void>();
    edge.behavior.thing = async () => {
      await done.promise;
      return { slow: true };
    };
    const served = edge.seen.length;
    const busy = [...clients.slice(1), next].map((client) => client.write(request()));
    await until(() => edge.seen.length === served + 3);
    await new RawClient(edge.port).closed();
    expect(cuts).toEqual(['evicted', 'address_limit']);
    done.resolve();
    for (const client of busy) expect((await client.answer()).status).toBe(200);
    expect(await connectionsOf(serverOf(edge))).toBe(3);
  });

  it('evicts, on a full port, an idle connection of the address that has the most', async () => {
    const cuts: string[] = [];
    const edge = await startEdge({ maxConnections: 4, onCut: (reason) => void cuts.push(reason) });
    const greedy = Array.from({ length: 4 }, () => new RawClient(edge.port));
    for (const client of greedy) expect((await client.write(request()).answer()).status).toBe(200);
    greedy.push(new RawClient(edge.port).write(request()));
    expect((await greedy[4]!.answer()).status).toBe(200);
    // Use another loopback address.
    const other = connect({ port: edge.port, host: '127.0.0.1', localAddress: '127.0.0.2' });
    ended.push(() => other.destroy());
    other.write(request());
    const [answer] = (await once(other, 'data')) as [Buffer];
    expect(answer.toString()).toContain('HTTP/1.1 200');
    expect(cuts).toEqual(['evicted', 'evicted']);
    await Promise.all(greedy.slice(0, 2).map((client) => client.closed()));
    expect(greedy.slice(2).every((client) => !client.isClosed)).toBe(true);
  });

  it('does not close connections that are being served', async () => {
    const edge = await startEdge({ maxConnections: 2 });
    const done = Promise.withResolvers<void>();
    edge.behavior.thing = async () => {
      await done.promise;
      return { slow: true };
    };
    const busy = [1, 2].map(() => new RawClient(edge.port).write(request()));
    await until(() => edge.seen.length === 2);
    const other = connect({ port: edge.port, host: '127.0.0.1', localAddress: '127.0.0.2' });
    await new Promise((resolve) => other.on('error', () => undefined).once('close', resolve));
    done.resolve();
    for (const client of busy) expect((await client.answer()).status).toBe(200);
  });
});
