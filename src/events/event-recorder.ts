import { Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { newId } from '../common/ids.js';
import type { TenantScope } from '../common/tenant-scope.js';
import { databaseNow, prepared, sql, type Tx } from '../infra/database/index.js';
import { currentTraceparent } from '../infra/tracing/index.js';
import type { NewEvent } from './event.js';

export interface RecordedEvent extends Pick<NewEvent, 'partnerId' | 'mode' | 'type'> {
  readonly id: string;
  /** The level of an `esim.usage.level`; null for other types. */
  readonly usageLevel: number | null;
  /** The body as it is sent. */
  readonly body: string;
}

/** Creates an event's deliveries; implemented by the webhooks feature. */
export interface EventFanOut {
  /**
   * Called in the transaction of the events, before their insert has returned.
   * @param at the time in their ids; no delivery is created unless it is near now (`isNearNow`)
   */
  owe(tx: Tx, events: readonly RecordedEvent[], at: Date): Promise<void>;
  /** Returns the usage levels that the endpoints of each scope name, in percent and ascending. */
  usageLevels(tx: Tx, scopes: readonly TenantScope[]): Promise<UsageLevels>;
}

export type UsageLevels = (scope: TenantScope) => readonly number[];

/**
 * The outbox. The transaction that changes the state also inserts the event and its deliveries, so an event exists if
 * and only if its state change is committed.
 */
@Injectable()
export class EventRecorder implements OnApplicationBootstrap {
  private target: EventFanOut | null = null;

  /** Called once by the fan-out's own module, so that `events` does not depend on its listener. */
  register(target: EventFanOut): void {
    this.target = target;
  }

  /** @throws Error at boot if no fan-out is registered, because events would get no deliveries */
  onApplicationBootstrap(): void {
    if (!this.target) throw new Error('EventRecorder has no fan-out: import WebhooksCoreModule in this app');
  }

  /**
   * Records events of any partners in the caller's transaction, in order, and creates their deliveries: two statements
   * in one round trip, whatever the number (D51). Each body is created here and never changes (D28).
   */
  async record(tx: Tx, events: readonly NewEvent[]): Promise<void> {
    if (events.length === 0) return;
    if (await this.recordAt(tx, events, new Date())) return;
    if (await this.recordAt(tx, events, await databaseNow(tx))) return;
    throw new Error('no event recorded: the database clock jumped');
  }

  /** The levels for which an `esim.usage.level` is recorded (D58): those that an endpoint of the scope names. */
  usageLevels(tx: Tx, scopes: readonly TenantScope[]): Promise<UsageLevels> {
    return this.target!.usageLevels(tx, scopes);
  }

  /**
   * Records the events with ids of the time `at`, which selects their partition. Only partitions near today exist: if
   * the process's clock differs from the database's by more than a day, it records nothing and returns false (D40).
   */
  private async recordAt(tx: Tx, events: readonly NewEvent[], at: Date): Promise<boolean> {
    // The feed orders events of one moment by id: sorted ids preserve the order in which they happened.
    const ids = events.map(() => newId('evt', at.getTime())).sort();
    const within = currentTraceparent();
    const recorded = events.map((event, index): RecordedEvent => {
      const { partnerId, mode, type } = event;
      const usageLevel = event.type === 'esim.usage.level' ? event.data.percent : null;
      return { id: ids[index]!, partnerId, mode, type, usageLevel, body: toBody(event, ids[index]!) };
    });
    const inserted = sql(tx.manager, INSERT, [
      ids,
      events.map((event) => event.partnerId),
      events.map((event) => event.mode),
      events.map((event) => event.type),
      recorded.map(({ body }) => body),
      events.map((event) => event.happenedAt),
      at,
      events.map((event) => event.traceparent ?? within),
    ]);
    const owed = this.target!.owe(tx, recorded, at);
    const [{ affected }] = await Promise.all([inserted, owed]);
    return affected === events.length;
  }
}

const INSERT = prepared(`
  INSERT INTO events (id, partner_id, mode, type, body, created_at, traceparent)
  SELECT id, partner_id, mode, type, body, created_at, traceparent
  FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::timestamptz[], $8::text[])
    AS e (id, partner_id, mode, type, body, created_at, traceparent)
  WHERE ${isNearNow('$7')}`);

/** SQL condition that a time is within a day of the database's clock. */
export function isNearNow(at: string): string {
  return `${at}::timestamptz BETWEEN now() - interval '1 day' AND now() + interval '1 day'`;
}

/** The envelope: exactly `id, type, created_at, data` (spec section 2). */
function toBody({ type, happenedAt, data }: NewEvent, id: string): string {
  return JSON.stringify({ id, type, created_at: happenedAt.toISOString(), data });
}
