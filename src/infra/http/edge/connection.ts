import type { Socket } from 'node:net';
import type { FastifyReply } from 'fastify';
import { recordCall } from './call.js';
import type { CallRecorder, EdgeCall } from './contract.js';

/** Calls of one connection that are served at once; others that were sent ahead wait for them. */
const MAX_CALLS_SERVED = 8;
/** Beyond these the connection is reset: no key has so many tokens at once (spec section 8). */
const MAX_CALLS_WAITING = 256;

/** The status of a call whose caller hung up before the response. */
export const CLIENT_GONE = 499;

/**
 * What is owed to the caller at the other end of one socket. It makes "recorded exactly once" (D38) hold for
 * responses, abandoned calls and responses written past Fastify alike, without a listener per request.
 */
export class Connection {
  /** Calls without a response, oldest first; null is a call that is not recorded. */
  private readonly owed = new Map<FastifyReply, EdgeCall | null>();
  /** Those of them that wait until fewer of their connection are served, oldest first. */
  private readonly waiting: ((isServed: boolean) => void)[] = [];
  private newest: FastifyReply | null = null;
  private reading: FastifyReply | null = null;
  private waitingForReading: (() => void) | null = null;
  private waitingForResponses: { readonly owed: number; readonly act: () => void } | null = null;
  /** The parser has given up: nothing more can be read from this socket. */
  broken = false;
  /** The server is closing: nothing more is to be read from this socket. */
  private closing = false;

  constructor(
    readonly socket: Socket,
    private readonly recorder: () => CallRecorder,
  ) {}

  begin(reply: FastifyReply, call: EdgeCall | null): void {
    this.owed.set(reply, call);
    this.newest = reply;
  }

  /** More calls are under way than are served of one connection at once: the newest has to wait for `turn`. */
  get isCrowded(): boolean {
    return this.owed.size - this.waiting.length > MAX_CALLS_SERVED;
  }

  /**
   * The turn of the call that has just begun; false when its connection has ended meanwhile. A caller that sends on and
   * on without reading would otherwise have all its answers made, and kept in our memory.
   */
  turn(): Promise<boolean> {
    if (this.socket.destroyed) return Promise.resolve(false);
    const turn = new Promise<boolean>((resolve) => this.waiting.push(resolve));
    // Node reads on whatever waits, so this is the only end to it.
    if (this.waiting.length > MAX_CALLS_WAITING) this.socket.resetAndDestroy();
    return turn;
  }

  /** The call has its response. Whatever comes later for it is not recorded again. */
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

  /** An idle connection must not keep its last call in memory. Half a body may still break off, though. */
  private forget(reply: FastifyReply): void {
    if (this.reading === reply) this.reading = null;
    if (this.newest === reply && reply.request.raw.complete) this.newest = null;
  }

  /** No call waits for its answer. */
  get isIdle(): boolean {
    return this.owed.size === 0;
  }

  isOwed(reply: FastifyReply): boolean {
    return this.owed.has(reply);
  }

  /** The socket is gone, and with it every call that waited for a response. */
  abandon(): void {
    for (const reply of this.owed.keys()) this.finish(reply, CLIENT_GONE);
  }

  /** The newest call, if its body is not there yet. */
  get arriving(): FastifyReply | null {
    return this.newest && !this.newest.request.raw.complete ? this.newest : null;
  }

  /** The head of the call is fine; from here on a broken body is what it is refused for (D7). */
  startReading(reply: FastifyReply): void {
    this.reading = reply;
    const act = this.waitingForReading;
    this.waitingForReading = null;
    act?.();
  }

  /** Runs `act` once the head of the call has passed. If it does not, the call has its response by that. */
  whenReading(reply: FastifyReply, act: () => void): void {
    if (!this.owed.has(reply)) this.afterResponse();
    else if (this.reading === reply) act();
    else this.waitingForReading = act;
  }

  /** Runs `act` once no more than `owed` responses are outstanding: responses leave in the order of the calls. */
  whenOwed(owed: number, act: () => void): void {
    this.waitingForResponses = { owed, act };
    this.afterResponse();
  }

  /** Ends the connection as soon as every call has its response. */
  close(): void {
    this.closing = true;
    // On the last one only: said any earlier, it would cut off the responses after it.
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
   * Ends every connection as soon as its calls have their responses, idle ones at once. What is still arriving gets
   * `arrivingMs`: Node looks for slow requests no longer once a server closes, so they could hold it open. After
   * `withinMs` every connection is reset, whoever does not take its answers.
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

/** Marks the call as responded to on the connection that it came by. */
export function finishCall(reply: FastifyReply, status: number): void {
  (reply.request.raw.socket as TrackedSocket)[connectionKey]?.finish(reply, status);
}
