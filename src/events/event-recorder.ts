import { Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { newId } from '../common/ids.js';
import { databaseNow, sql, type Tx } from '../infra/database/index.js';
import type { NewEvent, RecordedEvent } from './event.js';

/** Owes recorded events to somebody, in the same transaction. The webhooks feature is the one that does. */
export interface EventFanOut {
  fanOut(tx: Tx, events: readonly RecordedEvent[]): Promise<void>;
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

  /** @throws Error at boot when nothing fans out: events would be recorded and silently owed to nobody. */
  onApplicationBootstrap(): void {
    if (!this.target) throw new Error('EventRecorder has no fan-out: import WebhooksCoreModule in this app');
  }

  /** Records events in the caller's transaction, in order. The body is made here, once, for ever (D28). */
  async record(tx: Tx, events: readonly NewEvent[]): Promise<void> {
    if (events.length === 0) return;
    const recorded =
      (await insertAt(tx, events, new Date())) ?? (await insertAt(tx, events, await databaseNow(tx)));
    if (!recorded) throw new Error('no event was recorded: the clock of the database jumps');
    await this.target?.fanOut(tx, recorded);
  }
}

/**
 * Inserts the events with ids of this time. The time of an id picks its partition, and there are none far from today: a
 * process whose clock is more than a day from the database's inserts nothing and gets null (D40).
 */
async function insertAt(
  tx: Tx,
  events: readonly NewEvent[],
  at: Date,
): Promise<readonly RecordedEvent[] | null> {
  // The feed orders events of one moment by id: sorted ids keep the order in which they happened.
  const ids = events.map(() => newId('evt', at.getTime())).sort();
  const recorded = events.map((event, index) => ({ ...event, id: ids[index]! }));
  const { affected } = await sql(
    tx.manager,
    `INSERT INTO events (id, partner_id, mode, type, body, created_at)
     SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::timestamptz[])
     WHERE $7::timestamptz BETWEEN now() - interval '1 day' AND now() + interval '1 day'`,
    [
      recorded.map((event) => event.id),
      recorded.map((event) => event.partnerId),
      recorded.map((event) => event.mode),
      recorded.map((event) => event.type),
      recorded.map(toBody),
      recorded.map((event) => event.happenedAt),
      at,
    ],
  );
  return affected > 0 ? recorded : null;
}

/** The envelope: exactly `id, type, created_at, data` (spec section 2). */
function toBody(event: NewEvent & { id: string }): string {
  return JSON.stringify({
    id: event.id,
    type: event.type,
    created_at: event.happenedAt.toISOString(),
    data: event.data,
  });
}
