import { Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { newId } from '../common/ids.js';
import { databaseNow, prepared, sql, type Tx } from '../infra/database/index.js';
import { currentTraceparent } from '../infra/tracing/index.js';
import type { NewEvent } from './event.js';

/** Sends what is owed to endpoints. The webhooks feature is the one that does. */
export interface EventFanOut {
  /** Told, in the transaction of the events, to which enabled endpoints they are owed now; each is named once. */
  announce(tx: Tx, endpointIds: readonly string[]): void;
}

/**
 * The outbox: an event is a row of the transaction that made it true, and so is every delivery that it owes.
 * An event exists if and only if its state change is committed.
 */
@Injectable()
export class EventRecorder implements OnApplicationBootstrap {
  private target: EventFanOut | null = null;

  /** Called once by the fan-out's own module: `events` must not know who listens. */
  register(target: EventFanOut): void {
    this.target = target;
  }

  /** @throws Error at boot when nothing fans out: events would be recorded and sent by no worker before its sweep. */
  onApplicationBootstrap(): void {
    if (!this.target) throw new Error('EventRecorder has no fan-out: import WebhooksCoreModule in this app');
  }

  /**
   * Records events of any partners in the caller's transaction, in order, and owes them to the endpoints that want
   * them: one statement, however many events (D51). The body is made here, once, for ever (D28).
   */
  async record(tx: Tx, events: readonly NewEvent[]): Promise<void> {
    if (events.length === 0) return;
    const owed =
      (await recordAt(tx, events, new Date())) ?? (await recordAt(tx, events, await databaseNow(tx)));
    if (!owed) throw new Error('no event was recorded: the clock of the database jumps');
    if (owed.length > 0) this.target?.announce(tx, owed);
  }
}

const RECORD = prepared('SELECT endpoint_id FROM record_events($1, $2, $3, $4, $5, $6, $7, $8)');

/**
 * Records the events with ids of this time, and answers the enabled endpoints that they are owed to. The time of an id
 * picks its partition, and there are none far from today: a process whose clock is more than a day from the database's
 * records nothing and gets null (D40).
 */
async function recordAt(tx: Tx, events: readonly NewEvent[], at: Date): Promise<readonly string[] | null> {
  // The feed orders events of one moment by id: sorted ids keep the order in which they happened.
  const ids = events.map(() => newId('evt', at.getTime())).sort();
  const within = currentTraceparent();
  const { rows } = await sql<{ endpoint_id: string | null }>(tx.manager, RECORD, [
    ids,
    events.map((event) => event.partnerId),
    events.map((event) => event.mode),
    events.map((event) => event.type),
    events.map((event, index) => toBody(event, ids[index]!)),
    events.map((event) => event.happenedAt),
    at,
    events.map((event) => event.traceparent ?? within),
  ]);
  const endpointIds = rows.map((row) => row.endpoint_id).filter((id) => id !== null);
  return endpointIds.length === rows.length ? endpointIds : null;
}

/** The envelope: exactly `id, type, created_at, data` (spec section 2). */
function toBody({ type, happenedAt, data }: NewEvent, id: string): string {
  return JSON.stringify({ id, type, created_at: happenedAt.toISOString(), data });
}
