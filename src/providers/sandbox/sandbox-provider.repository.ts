import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import { SecretBox } from '../../infra/crypto/index.js';
import { COMMIT_WITHOUT_DISK, prepared, sql, type Tx } from '../../infra/database/index.js';
import type { FailureCode, ProviderProfile } from '../esim-provider.js';

/** An order in the simulated provider's records. */
export interface SandboxOrder {
  readonly reference: string;
  readonly packageId: string;
  readonly quantity: number;
  readonly rejection: FailureCode | null;
  readonly profiles: readonly ProviderProfile[];
  /** Milliseconds until the order is ready, by the database's clock; 0 when it is ready. */
  readonly readyInMs: number;
  readonly canceled: boolean;
}

export interface NewSandboxOrder {
  readonly reference: string;
  readonly packageId: string;
  readonly quantity: number;
  readonly rejection: FailureCode | null;
  readonly profiles: readonly ProviderProfile[];
  readonly delayMs: number;
}

/** A top-up in the simulated provider's records. */
export interface SandboxTopup {
  readonly reference: string;
  readonly providerEsimId: string;
  readonly packageId: string;
  readonly rejection: FailureCode | null;
}

interface SandboxOrderRow {
  reference: string;
  package_id: string;
  quantity: number;
  rejection_code: FailureCode | null;
  profiles: string;
  ready_in_ms: number;
  canceled: boolean;
}

const INSERT_ORDERS = prepared(`
  INSERT INTO sandbox_upstream_orders (reference, package_id, quantity, outcome, rejection_code, profiles, ready_at)
  SELECT reference, package_id, quantity, outcome, rejection_code, profiles, now() + delay_ms * interval '1 millisecond'
  FROM unnest($1::text[], $2::text[], $3::int[], $4::text[], $5::text[], $6::text[], $7::int[])
    AS o (reference, package_id, quantity, outcome, rejection_code, profiles, delay_ms), ${COMMIT_WITHOUT_DISK}
  ORDER BY reference
  ON CONFLICT (reference) DO NOTHING
  RETURNING reference`);

const INSERT_TOPUPS = prepared(`
  INSERT INTO sandbox_upstream_topups (reference, provider_esim_id, package_id, rejection_code)
  SELECT t.* FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) AS t (reference), ${COMMIT_WITHOUT_DISK}
  ORDER BY t.reference
  ON CONFLICT (reference) DO NOTHING
  RETURNING reference`);

/**
 * The simulated provider's own database: it commits separately from ours, as a real provider would. Purchases do not
 * wait for the disk: the commit that announces one comes later and makes both durable (D61).
 */
@Injectable()
export class SandboxProviderRepository {
  constructor(
    @InjectEntityManager() private readonly manager: EntityManager,
    private readonly secrets: SecretBox,
  ) {}

  /**
   * Stores orders with new references, sorted by reference, so that workers that insert the same ones cannot deadlock.
   * Returns whether each is new.
   */
  async insert(orders: readonly NewSandboxOrder[]): Promise<readonly boolean[]> {
    const { rows } = await sql<{ reference: string }>(this.manager, INSERT_ORDERS, [
      orders.map(({ reference }) => reference),
      orders.map(({ packageId }) => packageId),
      orders.map(({ quantity }) => quantity),
      orders.map(({ rejection }) => (rejection === null ? 'provisioned' : 'rejected')),
      orders.map(({ rejection }) => rejection),
      orders.map(({ profiles, reference }) => this.secrets.seal(JSON.stringify(profiles), reference)),
      orders.map(({ delayMs }) => delayMs),
    ]);
    const inserted = new Set(rows.map(({ reference }) => reference));
    return orders.map(({ reference }) => inserted.has(reference));
  }

  async find(reference: string): Promise<SandboxOrder | null> {
    const { rows } = await sql<SandboxOrderRow>(
      this.manager,
      `SELECT reference, package_id, quantity, rejection_code, profiles,
              greatest(0, ceil(extract(epoch FROM ready_at - now()) * 1000))::int AS ready_in_ms,
              canceled_at IS NOT NULL AS canceled
       FROM sandbox_upstream_orders WHERE reference = $1`,
      [reference],
    );
    const row = rows[0];
    if (!row) return null;
    return {
      reference: row.reference,
      packageId: row.package_id,
      quantity: row.quantity,
      rejection: row.rejection_code,
      profiles: JSON.parse(this.secrets.open(row.profiles, reference)) as ProviderProfile[],
      readyInMs: row.ready_in_ms,
      canceled: row.canceled,
    };
  }

  async cancel(reference: string): Promise<void> {
    await sql(
      this.manager,
      'UPDATE sandbox_upstream_orders SET canceled_at = coalesce(canceled_at, now()) WHERE reference = $1',
      [reference],
    );
  }

  /** Deletes purchases that we purge (D44), in our transaction: nobody looks them up by reference any more. */
  async forget(
    tx: Tx,
    references: { readonly orders: readonly string[]; readonly topups: readonly string[] },
  ): Promise<void> {
    await sql(tx.manager, 'DELETE FROM sandbox_upstream_topups WHERE reference = ANY ($1)', [
      references.topups,
    ]);
    await sql(tx.manager, 'DELETE FROM sandbox_upstream_orders WHERE reference = ANY ($1)', [
      references.orders,
    ]);
  }

  /** Stores top-ups with new references, so that each is applied exactly once. Returns whether each is new. */
  async insertTopups(topups: readonly SandboxTopup[]): Promise<readonly boolean[]> {
    const { rows } = await sql<{ reference: string }>(this.manager, INSERT_TOPUPS, [
      topups.map(({ reference }) => reference),
      topups.map(({ providerEsimId }) => providerEsimId),
      topups.map(({ packageId }) => packageId),
      topups.map(({ rejection }) => rejection),
    ]);
    const inserted = new Set(rows.map(({ reference }) => reference));
    return topups.map(({ reference }) => inserted.has(reference));
  }

  async findTopup(reference: string): Promise<SandboxTopup | null> {
    const { rows } = await sql<SandboxTopup>(
      this.manager,
      `SELECT reference, provider_esim_id AS "providerEsimId", package_id AS "packageId", rejection_code AS rejection
       FROM sandbox_upstream_topups WHERE reference = $1`,
      [reference],
    );
    return rows[0] ?? null;
  }
}
