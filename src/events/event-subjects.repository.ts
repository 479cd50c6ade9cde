import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import { isId, timeOfId } from '../common/ids.js';
import type { TenantScope } from '../common/tenant-scope.js';
import { sql } from '../infra/database/index.js';

/** An order, an eSIM or a top-up whose events are listed. */
export interface EventSubject {
  readonly id: string;
  /** Every event about the subject names its order, by which the events are found. */
  readonly orderId: string;
  /** Lower bound of its events' times. */
  readonly since: Date;
}

/** Maximum difference between process clocks: the order's id comes from one, the event's from another. */
const CLOCK_SKEW_MS = 3_600_000;

const PREFIXES = ['ord', 'esim', 'top'] as const;

export function isSubjectId(value: string): boolean {
  return PREFIXES.some((prefix) => isId(prefix, value));
}

/** Lower bound of the times of the order's events. */
export function firstEventOf(orderId: string): Date {
  return new Date(timeOfId(orderId).getTime() - CLOCK_SKEW_MS);
}

/** Finds the order that an object's events name. */
@Injectable()
export class EventSubjectsRepository {
  constructor(@InjectEntityManager() private readonly manager: EntityManager) {}

  /** Null when the partner does not have such an object in this mode, or no longer has it (D44). */
  async find(scope: TenantScope, id: string): Promise<EventSubject | null> {
    const orderId = isId('ord', id) ? id : await this.orderOf(scope, id);
    if (orderId === null) return null;
    return { id, orderId, since: firstEventOf(orderId) };
  }

  private async orderOf({ partnerId, mode }: TenantScope, id: string): Promise<string | null> {
    const { rows } = await sql<{ order_id: string }>(
      this.manager,
      isId('esim', id)
        ? 'SELECT order_id FROM esims WHERE id = $1 AND partner_id = $2 AND mode = $3'
        : `SELECT e.order_id FROM topups t JOIN esims e ON e.id = t.esim_id
           WHERE t.id = $1 AND t.partner_id = $2 AND t.mode = $3`,
      [id, partnerId, mode],
    );
    return rows[0]?.order_id ?? null;
  }
}
