import type { Socket } from 'node:net';
import type { FastifyReply } from 'fastify';
import { Connection } from './connection.js';
import type { CallRecorder } from './contract.js';

const connectionKey = Symbol('edge.connection');

type TrackedSocket = Socket & { [connectionKey]?: Connection };

/** All connections of one port. */
export class Connections {
  private readonly open = new Set<Connection>();
  private isClosing = false;

  constructor(private readonly recorder: CallRecorder) {}

  get closing(): boolean {
    return this.isClosing;
  }

  /** The connection of a socket; tracked from its first use on. */
  of(socket: Socket): Connection {
    const known = (socket as TrackedSocket)[connectionKey];
    if (known) return known;
    const connection = new Connection(socket, this.recorder);
    (socket as TrackedSocket)[connectionKey] = connection;
    this.open.add(connection);
    socket.once('close', () => {
      this.open.delete(connection);
      connection.abandon();
    });
    return connection;
  }

  /**
   * Ends every connection as soon as its calls are answered, idle ones at once. What is still arriving gets
   * `graceMs`: Node looks for slow requests no longer once a server closes, so they could hold it open.
   */
  close(graceMs: number): void {
    this.isClosing = true;
    for (const connection of this.open) connection.close();
    setTimeout(() => {
      for (const connection of this.open) if (connection.arriving) connection.socket.destroy();
    }, graceMs).unref();
  }
}

/** Marks the call as answered on the connection that it came by. */
export function finishCall(reply: FastifyReply, status: number): void {
  (reply.request.raw.socket as TrackedSocket)[connectionKey]?.finish(reply, status);
}
