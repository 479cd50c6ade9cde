import type { Socket } from 'node:net';
import type { FastifyReply } from 'fastify';
import { recordCall } from './call.js';
import type { CallRecorder, EdgeCall } from './contract.js';

/** Maximum concurrent calls per connection; further pipelined calls wait. */
const MAX_CALLS_SERVED = 8;
/** Beyond this the connection is reset: no key has that many tokens at once (spec section 8). */
const MAX_CALLS_WAITING = 256;

/** Status of a call whose caller hung up before the response. */
export const CLIENT_GONE = 499;

/**
 * Outstanding calls of one socket. Ensures that each call is recorded exactly once (D38), including abandoned calls and
 * responses that bypass Fastify, without a listener per request.
 */
export class Connection {
  /** Calls without a response, oldest first; null for a call that is not recorded. */
  private readonly owed = new Map<FastifyReply, EdgeCall | null>();
  /** Calls that wait until fewer calls of this connection are running, oldest first. */
  private readonly waiting: ((isServed: boolean) => void)[] = [];
  private newest: FastifyReply | null = null;
  private reading: FastifyReply | null = null;
  private waitingForReading: (() => void) | null = null;
  private waitingForResponses: { readonly owed: number; readonly act: () => void } | null = null;
  /** The parser has failed, so nothing more can be read from this socket. */
  broken = false;
  /** The server is closing, so nothing more may be read from this socket. */
  private closing = false;

  constructor(
    readonly socket: Socket,
    private readonly recorder: () => CallRecorder,
  ) {}

  begin(reply: FastifyReply, call: EdgeCall | null): void {
    this.owed.set(reply, call);
    this.newest = reply;
  }

  /** Whether the connection has more calls than may run at once. The newest must then wait for `turn`. */
  get isCrowded(): boolean {
    return this.owed.size - this.waiting.length > MAX_CALLS_SERVED;
  }

  /**
   * Resolves to true when the newest call may run, and to false if its connection ended first. Without this limit, a
   * caller that keeps sending without reading would have all its responses computed and kept in memory.
   */
  turn(): Promise<boolean> {
    if (this.socket.destroyed) return Promise.resolve(false);
    const turn = new Promise<boolean>((resolve) => this.waiting.push(resolve));
    // Node keeps reading however many calls wait, so this is the only limit.
    if (this.waiting.length > MAX_CALLS_WAITING) this.socket.resetAndDestroy();
    return turn;
  }

  /** Marks the call as finished. A later response to it is not recorded. */
  finish(reply: FastifyReply, status: number): void {
    const call = this.owed.get(reply);
    if (call === undefined) return;
    this.owed.delete(reply);
    this.nextTurn();
    this.forget(reply);
    if (call) recordCall(this.recorder(), call, reply.request, status);
    this.afterResponse();
  }

  private nextTurn(): void {
    const next = this.waiting.shift();
    next?.(!this.socket.destroyed);
  }

  /** An idle connection must not keep its last call in memory, unless its body may still be cut off. */
  private forget(reply: FastifyReply): void {
    if (this.reading === reply) this.reading = null;
    if (this.newest === reply && reply.request.raw.complete) this.newest = null;
  }

  /** Whether no call waits for its response. */
  get isIdle(): boolean {
    return this.owed.size === 0;
  }

  isOwed(reply: FastifyReply): boolean {
    return this.owed.has(reply);
  }

  /** Ends every waiting call after the socket was lost. */
  abandon(): void {
    for (const reply of this.owed.keys()) this.finish(reply, CLIENT_GONE);
  }

  /** The newest call, if its body is incomplete. */
  get arriving(): FastifyReply | null {
    return this.newest && !this.newest.request.raw.complete ? this.newest : null;
  }

  /** The head of the call has passed every check. From here on, the call is refused if its body is broken (D7). */
  startReading(reply: FastifyReply): void {
    this.reading = reply;
    const act = this.waitingForReading;
    this.waitingForReading = null;
    act?.();
  }

  /**
   * Runs `act` once the head of the call has passed every check, or not at all if the call already has its response.
   */
  whenReading(reply: FastifyReply, act: () => void): void {
    if (!this.owed.has(reply)) this.afterResponse();
    else if (this.reading === reply) act();
    else this.waitingForReading = act;
  }

  /** Runs `act` once at most `owed` responses are outstanding. Responses are sent in call order. */
  whenOwed(owed: number, act: () => void): void {
    this.waitingForResponses = { owed, act };
    this.afterResponse();
  }

  /** Ends the connection once every call has its response. */
  close(): void {
    this.closing = true;
    // Set only on the last response: on an earlier one, it would cut off the responses after it.
    if (this.newest && this.owed.has(this.newest) && !this.newest.raw.headersSent) {
      this.newest.raw.setHeader('connection', 'close');
    }
    this.afterResponse();
  }

  private afterResponse(): void {
    const waiting = this.waitingForResponses;
    if (waiting && this.owed.size <= waiting.owed) {
      this.waitingForResponses = null;
      waiting.act();
    }
    if ((this.broken || this.closing) && this.owed.size === 0) this.socket.destroySoon();
  }
}

const connectionKey = Symbol('edge.connection');

type TrackedSocket = Socket & { [connectionKey]?: Connection };

/** All connections of one port. */
export class Connections {
  private readonly open = new Set<Connection>();
  private isClosing = false;

  constructor(private readonly recorder: () => CallRecorder) {}

  get closing(): boolean {
    return this.isClosing;
  }

  /** The connection of a socket, tracked from its first use on. */
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
   * Ends every connection once its calls have their responses, idle ones at once. Incomplete requests get `arrivingMs`:
   * a closing server no longer times slow requests out, so they could keep it open. After `withinMs` every connection
   * is reset, even if its caller does not read.
   */
  close(arrivingMs: number, withinMs: number): void {
    this.isClosing = true;
    for (const connection of this.open) connection.close();
    setTimeout(() => {
      for (const connection of this.open) if (connection.arriving) connection.socket.destroy();
    }, arrivingMs).unref();
    setTimeout(() => {
      for (const connection of this.open) connection.socket.resetAndDestroy();
    }, withinMs).unref();
  }
}

/** Marks the call as finished on its connection. */
export function finishCall(reply: FastifyReply, status: number): void {
  (reply.request.raw.socket as TrackedSocket)[connectionKey]?.finish(reply, status);
}
