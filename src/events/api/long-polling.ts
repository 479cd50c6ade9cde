import { Injectable } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { PartnerPrincipal } from '../../auth/index.js';
import { EventFeed } from '../event-feed.js';
import { EventSubjectsRepository } from '../event-subjects.repository.js';
import { FeedWatch } from '../feed-watch.js';
import { MAX_WAIT_SECONDS, preferredWaitSeconds } from './prefer-wait.js';

/** A call that may carry `Prefer: wait=N`. */
export interface WaitingCall {
  readonly caller: PartnerPrincipal;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
}

/** The result of one read, and how long it stays true. */
export interface Found<T> {
  readonly value: T;
  /** Whether the caller waits for this value. If not, the call waits for the next event. */
  readonly isAwaited: boolean;
  /** The read has seen every event up to this position. */
  readonly position: number;
  /** The value may change without an event: read it again after this time. */
  readonly readAgainMs?: number;
}

/** No event reports that a cancellation was refused. */
const CANCELING_MS = 2_000;

/**
 * Carries out `Prefer: wait=N` (D39): reads again after each new event until the awaited value is there, or the time is
 * over. It holds no connection between two reads. `FeedWatch` limits the number of waiting calls.
 */
@Injectable()
export class LongPolling {
  constructor(
    private readonly watch: FeedWatch,
    private readonly feed: EventFeed,
    private readonly subjects: EventSubjectsRepository,
  ) {}

  /**
   * Reads once if the call does not ask to wait. Otherwise `Preference-Applied` confirms the wait, unless too many calls
   * are waiting.
   * @param orderId wakes only for events of this order
   */
  async readUntil<T>(call: WaitingCall, read: () => Promise<Found<T>>, orderId?: string): Promise<T> {
    const waitSeconds = preferredWaitSeconds(call.request.headers.prefer);
    if (waitSeconds === null) return (await read()).value;
    const endsAt = performance.now() + waitSeconds * 1_000;
    const gone = new AbortController();
    const hungUp = (): void => gone.abort();
    const { socket } = call.request.raw;
    socket.once('close', hungUp);
    try {
      for (;;) {
        const found = await read();
        const leftMs = endsAt - performance.now();
        const end =
          found.isAwaited || leftMs <= 0
            ? 'done'
            : await this.watch.wait({
                scope: call.caller,
                keyId: call.caller.keyId,
                orderId,
                position: found.position,
                forMs: Math.min(leftMs, found.readAgainMs ?? leftMs),
                gone: gone.signal,
              });
        if (end === 'new' || (end === 'time' && found.readAgainMs !== undefined)) continue;
        if (end !== 'no room') void call.reply.header('preference-applied', `wait=${waitSeconds}`);
        return found.value;
      }
    } finally {
      socket.off('close', hungUp);
    }
  }

  /** Reads an order or a top-up; waits until it is no longer `pending`, `processing` or `canceling`. */
  async readUntilEnded<T>(
    call: WaitingCall,
    id: string,
    read: () => Promise<T>,
    statusOf: (value: T) => string,
  ): Promise<T> {
    if (preferredWaitSeconds(call.request.headers.prefer) === null) return read();
    const subject = await this.subjects.find(call.caller, id);
    const readFromHead = async (): Promise<Found<T>> => {
      const position = await this.feed.head(call.caller.mode);
      const value = await read();
      const status = statusOf(value);
      const isAwaited = !['pending', 'processing', 'canceling'].includes(status);
      const readAgainMs = status === 'canceling' ? CANCELING_MS : MAX_WAIT_SECONDS * 1_000;
      return { value, isAwaited, position, readAgainMs };
    };
    return this.readUntil(call, readFromHead, subject?.orderId);
  }
}
