import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { Worker } from 'node:worker_threads';

/**
 * Listens, and accepts nobody: with a full queue the kernel drops every further SYN, as a firewall or a dead host does.
 */
export interface DeafAddress {
  readonly port: number;
  /**
   * From now on it accepts. The kernel of the caller sends a lost SYN again one second after the first, so a connection
   * that is under way takes a second, as over a link that has lost a packet.
   */
  hear(): void;
  close(): Promise<void>;
}

/** The listener blocks its own thread, and greets nobody: `answer` is sent to whoever sends something. */
const LISTENER = `
  const { workerData, parentPort } = require('node:worker_threads');
  const server = require('node:net').createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () => socket.end(workerData.answer));
  });
  server.listen({ host: workerData.host, port: workerData.port, backlog: 1 }, () => {
    parentPort.postMessage(server.address().port);
    setImmediate(() => Atomics.wait(new Int32Array(workerData.flag), 0, 0));
  });`;

/** More than a backlog of one holds. */
const FILLERS = 4;

export async function deafAddress(host: string, port = 0, answer = ''): Promise<DeafAddress> {
  const flag = new SharedArrayBuffer(4);
  const worker = new Worker(LISTENER, { eval: true, workerData: { host, port, answer, flag } });
  const [listening] = (await once(worker, 'message')) as [number];
  const fillers = Array.from({ length: FILLERS }, () => filler(host, listening));
  // The queue is full when a connection is taken and another one is not: the first two fit.
  await Promise.all(fillers.slice(0, 2).map((socket) => once(socket, 'connect')));
  const hear = (): void => {
    Atomics.store(new Int32Array(flag), 0, 1);
    Atomics.notify(new Int32Array(flag), 0);
  };
  return {
    port: listening,
    hear,
    close: async () => {
      for (const socket of fillers) socket.destroy();
      hear();
      await worker.terminate();
    },
  };
}

function filler(host: string, port: number): Socket {
  const socket = connect(port, host);
  socket.on('error', () => undefined);
  return socket;
}
