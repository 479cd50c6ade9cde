import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import { sql, toSafeIntegerOrNull } from '../../infra/database/index.js';
import {
  EsimPurchasesRepository,
  type ProviderOrderRequest,
  type ProviderTopupRequest,
} from '../../providers/index.js';

/** An eSIM of an ended order in our records. */
export interface BookedEsim {
  readonly id: string;
  /** The provider's id. */
  readonly upstreamId: string;
  readonly canceled: boolean;
}

/** An ended live order in our records. */
export interface BookedOrder {
  readonly id: string;
  readonly partnerId: string;
  readonly status: 'issued' | 'partially_issued' | 'failed' | 'canceled';
  readonly quantityIssued: number;
  readonly esims: readonly BookedEsim[];
  readonly request: ProviderOrderRequest;
  /** No part of the order was placed after this time. */
  readonly endedAt: Date;
}

/** An ended live top-up in our records. */
export interface BookedTopup {
  readonly id: string;
  readonly partnerId: string;
  readonly esimId: string;
  readonly status: 'completed' | 'failed';
  readonly request: ProviderTopupRequest;
}

interface OrderRow {
  id: string;
  partner_id: string;
  status: BookedOrder['status'];
  quantity: number;
  quantity_issued: number;
  package_id: string;
  upstream_package_id: string;
  days: number | null;
  unit_cost_micros: string | null;
  unit_cost_currency: string | null;
  provider_reference: string;
  created_at: Date;
  ended_at: Date;
  esims: BookedEsim[];
}

interface TopupRow {
  id: string;
  partner_id: string;
  status: BookedTopup['status'];
  esim_id: string;
  iccid: string;
  provider_esim_id: string;
  esim_created_at: Date;
  package_id: string;
  upstream_package_id: string;
  days: number | null;
  unit_cost_micros: string | null;
  unit_cost_currency: string | null;
  provider_reference: string;
  created_at: Date;
}

export type SubjectKind = 'order' | 'topup';

interface PageRow {
  ids: string[];
  last: string | null;
  read: number;
}

/** Change times have no index, so pages follow ids; this many rows are read per subject of a page. */
export const ROWS_PER_SUBJECT = 20;

/** Only purchases that may have been sent to the provider, long enough ago for the provider to show them. */
const COMPARABLE = `mode = 'live' AND provider = $1 AND upstream_placed_at IS NOT NULL
  AND updated_at >= $2 AND updated_at <= now() - $3 * interval '1 millisecond'`;

const FIRST_OF_PAGE = `
  ARRAY(SELECT id FROM page WHERE is_wanted ORDER BY id LIMIT $5::int) AS ids,
  (SELECT max(id) FROM page) AS last, (SELECT count(*)::int FROM page) AS read`;

const PAGES: Readonly<Record<SubjectKind, string>> = {
  order: `WITH page AS MATERIALIZED (
      SELECT id, ${COMPARABLE} AND status IN ('issued', 'partially_issued', 'failed', 'canceled') AS is_wanted
      FROM orders WHERE id > $4 ORDER BY id LIMIT $6::int)
    SELECT ${FIRST_OF_PAGE}`,
  topup: `WITH page AS MATERIALIZED (
      SELECT id, ${COMPARABLE} AND status IN ('completed', 'failed') AS is_wanted
      FROM topups WHERE id > $4 ORDER BY id LIMIT $6::int)
    SELECT ${FIRST_OF_PAGE}`,
};

const STRANGERS = `
  max(id) AS last, count(*)::int AS read,
  coalesce(array_agg(DISTINCT provider) FILTER (
    WHERE mode = 'live' AND updated_at >= $1 AND provider <> ALL ($2::text[])), '{}') AS providers`;

const OTHER_PROVIDERS: Readonly<Record<SubjectKind, string>> = {
  order: `SELECT ${STRANGERS} FROM (SELECT id, mode, provider, updated_at FROM orders
                                    WHERE id > $3 ORDER BY id LIMIT $4::int) AS page`,
  topup: `SELECT ${STRANGERS} FROM (SELECT id, mode, provider, updated_at FROM topups
                                    WHERE id > $3 ORDER BY id LIMIT $4::int) AS page`,
};

export interface ComparisonWindow {
  readonly provider: string;
  /** Changed at or after this time. */
  readonly since: Date;
  /** Time after a call during which the provider may not report its effect yet. */
  readonly readLagMs: number;
}

/** The orders and top-ups to compare with a provider, and our record of each. Read-only. */
@Injectable()
export class ProviderSubjectsRepository {
  constructor(
    @InjectEntityManager() private readonly manager: EntityManager,
    private readonly purchases: EsimPurchasesRepository,
  ) {}

  /** Providers other than `known` in purchases changed at or after `since`, among the `limit` rows after `after`. */
  async listOtherProviders(
    kind: SubjectKind,
    since: Date,
    known: readonly string[],
    after: string,
    limit: number,
  ): Promise<{ readonly providers: readonly string[]; readonly cursor: string | null }> {
    const { rows } = await sql<{ providers: string[]; last: string | null; read: number }>(
      this.manager,
      OTHER_PROVIDERS[kind],
      [since, known, after, limit],
    );
    const { providers, last, read } = rows[0]!;
    return { providers, cursor: read < limit ? null : last };
  }

  /**
   * Ids of ended orders or top-ups after `after`, oldest first; at most `limit`. Reads a bounded number of rows:
   * `cursor` is the last row read, whether it is compared or not, and null when none is left.
   */
  async listPage(
    kind: SubjectKind,
    { provider, since, readLagMs }: ComparisonWindow,
    after: string,
    limit: number,
  ): Promise<{ readonly ids: readonly string[]; readonly cursor: string | null }> {
    const { rows } = await sql<PageRow>(this.manager, PAGES[kind], [
      ...[provider, since, readLagMs],
      ...[after, limit, limit * ROWS_PER_SUBJECT],
    ]);
    const { ids, last, read } = rows[0]!;
    if (ids.length === limit) return { ids, cursor: ids.at(-1)! };
    return { ids, cursor: read < limit * ROWS_PER_SUBJECT ? null : last };
  }

  /** Null when it has not ended, or is no longer ended. */
  async findOrder(id: string): Promise<BookedOrder | null> {
    const { rows } = await sql<OrderRow>(
      this.manager,
      `SELECT o.id, o.partner_id, o.status, o.quantity, o.quantity_issued, o.package_id, o.upstream_package_id, o.days,
              o.unit_cost_micros, o.unit_cost_currency, o.provider_reference,
              -- what was bought before a restore, and claimed after it, is older than its order
              least(o.created_at, (SELECT u.sold_at FROM unclaimed_purchases u
                                   WHERE u.reference = o.provider_reference)) AS created_at,
              coalesce(o.issued_at, o.failed_at, o.updated_at) AS ended_at,
              coalesce((SELECT jsonb_agg(jsonb_build_object('id', e.id, 'upstreamId', e.provider_esim_id,
                                                            'canceled', e.status = 'canceled') ORDER BY e.id)
                        FROM esims e WHERE e.order_id = o.id), '[]') AS esims
       FROM orders o WHERE o.id = $1 AND o.status IN ('issued', 'partially_issued', 'failed', 'canceled')`,
      [id],
    );
    return rows[0] ? toOrder(rows[0]) : null;
  }

  /** Null when it has not ended. */
  async findTopup(id: string): Promise<BookedTopup | null> {
    const { rows } = await sql<TopupRow>(
      this.manager,
      `SELECT p.id, p.partner_id, p.status, p.esim_id, e.iccid, e.provider_esim_id, e.created_at AS esim_created_at,
              p.package_id, p.upstream_package_id, p.days, p.unit_cost_micros, p.unit_cost_currency, p.provider_reference,
              p.created_at
       FROM topups p JOIN esims e ON e.id = p.esim_id WHERE p.id = $1 AND p.status IN ('completed', 'failed')`,
      [id],
    );
    return rows[0] ? this.toTopup(rows[0]) : null;
  }

  private toTopup(row: TopupRow): BookedTopup {
    return {
      id: row.id,
      partnerId: row.partner_id,
      esimId: row.esim_id,
      status: row.status,
      request: {
        reference: row.provider_reference,
        esim: { providerEsimId: row.provider_esim_id, iccid: row.iccid, issuedAt: row.esim_created_at },
        packageId: row.package_id,
        upstreamPackageId: row.upstream_package_id,
        days: row.days,
        unitCost: costOf(row),
        acceptedAt: row.created_at,
        otherPurchases: () => this.purchases.getBesides(row.provider_reference),
      },
    };
  }
}

function toOrder(row: OrderRow): BookedOrder {
  return {
    id: row.id,
    partnerId: row.partner_id,
    status: row.status,
    quantityIssued: row.quantity_issued,
    esims: row.esims,
    endedAt: row.ended_at,
    request: {
      reference: row.provider_reference,
      packageId: row.package_id,
      upstreamPackageId: row.upstream_package_id,
      days: row.days,
      quantity: row.quantity,
      unitCost: costOf(row),
      acceptedAt: row.created_at,
    },
  };
}

function costOf(
  row: Pick<OrderRow, 'unit_cost_micros' | 'unit_cost_currency'>,
): ProviderOrderRequest['unitCost'] {
  const micros = toSafeIntegerOrNull(row.unit_cost_micros);
  return micros === null || row.unit_cost_currency === null
    ? null
    : { micros, currency: row.unit_cost_currency };
}
