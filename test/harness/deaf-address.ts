import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { Worker } from 'node:worker_threads';

/**
 * Listens and accepts nothing: with a full queue the kernel drops every further SYN, like a firewall or a dead host.
 */
export interface DeafAddress {
  readonly port: number;
  /**
   * Starts accepting. The caller's kernel resends a lost SYN after one second, so a pending connection takes a second,
   * as over a link that has lost a packet.
   */
  hear(): void;
  close(): Promise<void>;
}

/** The listener blocks its own thread and sends no greeting. It replies with `answer` to any input. */
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

/** More than fit into a backlog of one. */
const FILLERS = 4;

export async function deafAddress(host: string, port = 0, answer = ''): Promise<DeafAddress> {
  const flag = new SharedArrayBuffer(4);
  const worker = new Worker(LISTENER, { eval: true, workerData: { host, port, answer, flag } });
  const [listening] = (await once(worker, 'message')) as [number];
  const fillers = Array.from({ length: FILLERS }, () => filler(host, listening));
  // The queue is full when the first two connections are established and another one is not.
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
