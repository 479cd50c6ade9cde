import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import type { Mode } from '../common/mode.js';
import type { TenantScope } from '../common/tenant-scope.js';
import { sql, toSafeInteger, type Tx } from '../infra/database/index.js';

export const CHANGE_KINDS = ['added', 'changed', 'withdrawn'] as const;
export type ChangeKind = (typeof CHANGE_KINDS)[number];

/** A package that a transaction has written. */
export interface WrittenPackage {
  readonly id: string;
  readonly kind: ChangeKind;
  /** Fields of the package in the API, and `cost`. Empty for a new package. */
  readonly changed: readonly string[];
}

/** A place in the log. Positions follow the commits of a mode; the changes of a position are ordered by package id. */
export interface LogPlace {
  readonly position: number;
  readonly packageId: string;
}

export interface LoggedChange extends LogPlace, Omit<WrittenPackage, 'id'> {
  readonly at: Date;
}

/** Package id of a new price list, which changes every package for its partner. Sorts after every real id. */
export const EVERY_PACKAGE = '~';

/**
 * The fields of the API that depend on each value of a package. A statement compares the values of the old and the new
 * row.
 */
const VALUES_OF: Readonly<Record<string, readonly string[]>> = {
  ...Object.fromEntries(
    [
      ...[
        'title',
        'type',
        'region',
        'coverage',
        'kind',
        'data_bytes',
        'unlimited',
        'voice_minutes',
        'sms_count',
      ],
      ...[
        'validity_days',
        'activation_policy',
        'topup_supported',
        'networks',
        'speed_policy',
        'notes',
        'available',
      ],
    ].map((column) => [column, [column]]),
  ),
  data_label: ['data_bytes', 'unlimited', "terms->>'dataUnit'", "terms->>'plan'"],
  data_unit: ["terms->>'dataUnit'"],
  plan: ["terms->>'plan'", "terms->>'maxDays'"],
  fair_use: ["terms->>'fairUse'"],
  exit_countries: ["terms->>'exitCountries'"],
  max_generation: ["terms->>'maxGeneration'"],
  hotspot: ["terms->>'hotspot'"],
  install_within_days: ["terms->>'installWithinDays'"],
  topup: ["terms->>'topup'"],
  region_name: ["terms->>'regionName'"],
  variant: ["terms->>'variant'"],
  price: ['price_amount', 'currency'],
  // Follows `price` too, for a package that is sold by the day.
  price_per_day: ["terms->>'maxDays'"],
  retail_price: ['retail_amount', 'currency'],
  min_retail_price: ["terms->>'minRetailPrice'"],
  cost: ['cost_micros'],
};

/** Fields whose changes are recorded: those of the API, and `cost`, which decides prices by margin. */
export const RECORDED_FIELDS = Object.keys(VALUES_OF);

/** Selects each row of `n`, the new packages, with the fields that differ from the row of `o`, which it may lack. */
export const SELECT_CHANGES = `
  SELECT n.id,
    CASE WHEN o.id IS NULL THEN 'added' WHEN o.available AND NOT n.available THEN 'withdrawn' ELSE 'changed' END AS kind,
    CASE WHEN o.id IS NULL THEN '{}'::text[] ELSE array_remove(ARRAY[${Object.entries(VALUES_OF)
      .map(
        ([field, values]) =>
          `CASE WHEN (${rowOf('o', values)}) IS DISTINCT FROM (${rowOf('n', values)}) THEN '${field}' END`,
      )
      .join(', ')}], NULL) END AS changed
  FROM n LEFT JOIN o ON o.id = n.id`;

function rowOf(alias: string, values: readonly string[]): string {
  return values.map((value) => `${alias}.${value}`).join(', ');
}

interface ChangeRow {
  position: string;
  package_id: string;
  kind: ChangeKind;
  changed: string[];
  at: Date;
}

/** SQL of `catalog_changes` and `catalog_versions`. */
@Injectable()
export class CatalogChangesRepository {
  constructor(@InjectEntityManager() private readonly manager: EntityManager) {}

  /** The mode's version, which increases with every change of a package, and the last position of its log. */
  async getVersion(mode: Mode): Promise<{ version: number; position: number }> {
    const { rows } = await sql<{ version: string; position: string }>(
      this.manager,
      'SELECT version, position FROM catalog_versions WHERE mode = $1',
      [mode],
    );
    return { version: toSafeInteger(rows[0]?.version ?? 0), position: toSafeInteger(rows[0]?.position ?? 0) };
  }

  /** The last position of the mode's log, and the one up to which changes may have been purged. */
  async getEnds(tx: Tx, mode: Mode): Promise<{ position: number; keptAfter: number }> {
    const { rows } = await sql<{ position: string; kept_after: string }>(
      tx.manager,
      'SELECT position, kept_after FROM catalog_versions WHERE mode = $1',
      [mode],
    );
    const [{ position, kept_after: keptAfter }] = rows as [(typeof rows)[number]];
    return { position: toSafeInteger(position), keptAfter: toSafeInteger(keptAfter) };
  }

  /** Numbers of packages with a change of each kind, without new price lists. */
  async countBetween(tx: Tx, mode: Mode, after: number, upTo: number): Promise<Record<ChangeKind, number>> {
    const { rows } = await sql<{ kind: ChangeKind; packages: number }>(
      tx.manager,
      `SELECT kind, count(DISTINCT package_id)::int AS packages FROM catalog_changes
       WHERE mode = $1 AND position > $2 AND position <= $3 AND partner_id IS NULL GROUP BY kind`,
      [mode, after, upTo],
    );
    const counts = { added: 0, changed: 0, withdrawn: 0 };
    for (const { kind, packages } of rows) counts[kind] = packages;
    return counts;
  }

  /**
   * Lets one transaction at a time write packages of the mode, until its end. Taken before the packages' rows: the rows
   * that a statement then sees are those that it replaces.
   */
  async lock(tx: Tx, mode: Mode): Promise<void> {
    await sql(tx.manager, 'SELECT 1 FROM catalog_versions WHERE mode = $1 FOR NO KEY UPDATE', [mode]);
  }

  /**
   * Records written packages under the next position. The row lock of the version is held until the commit, so that no
   * position appears after a reader has seen a greater one. The time is read under that lock, and follows the positions.
   */
  async record(tx: Tx, mode: Mode, written: readonly WrittenPackage[]): Promise<void> {
    if (written.length === 0) return;
    await sql(
      tx.manager,
      `WITH next AS (
         UPDATE catalog_versions SET version = version + 1, position = position + 1 WHERE mode = $1
         RETURNING position, clock_timestamp() AS at
       )
       INSERT INTO catalog_changes (mode, position, at, package_id, kind, changed)
       SELECT $1, next.position, next.at, w.id, w.kind, w.changed
       FROM next, jsonb_to_recordset($2::jsonb) AS w (id text, kind text, changed text[])`,
      [mode, JSON.stringify(written)],
    );
  }

  /** Records that the partner has a new price list. The packages and their version stay as they are. */
  async recordPriceList(tx: Tx, partnerId: string): Promise<void> {
    await sql(
      tx.manager,
      `WITH next AS (
         UPDATE catalog_versions SET position = position + 1 WHERE mode = 'live'
         RETURNING position, clock_timestamp() AS at
       )
       INSERT INTO catalog_changes (mode, position, at, package_id, partner_id, kind, changed)
       SELECT 'live', next.position, next.at, $2, $1, 'changed', '{retail_price}' FROM next`,
      [partnerId, EVERY_PACKAGE],
    );
  }

  /**
   * At most `limit` changes for the partner after `after` and up to `upTo`, oldest first. Those up to `keptAfter` may have
   * been purged. Without `after`, begins with the oldest that is kept.
   */
  async list(
    { mode, partnerId }: TenantScope,
    after: LogPlace | null,
    upTo: number,
    limit: number,
  ): Promise<{ keptAfter: number; changes: readonly LoggedChange[] }> {
    const { rows } = await sql<{ kept_after: string } & (ChangeRow | { position: null })>(
      this.manager,
      `SELECT v.kept_after, c.* FROM catalog_versions v
       LEFT JOIN LATERAL (
         SELECT position, package_id, kind, changed, at FROM catalog_changes
         WHERE mode = $1 AND (position, package_id) > (coalesce($2::bigint, v.kept_after), $3::text) AND position <= $4
           AND (partner_id IS NULL OR partner_id = $5)
         ORDER BY position, package_id LIMIT $6
       ) AS c ON true
       WHERE v.mode = $1 ORDER BY c.position, c.package_id`,
      [mode, after?.position ?? null, after?.packageId ?? EVERY_PACKAGE, upTo, partnerId, limit],
    );
    return {
      keptAfter: toSafeInteger(rows[0]!.kept_after),
      changes: rows.flatMap((row) => (row.position === null ? [] : [toChange(row)])),
    };
  }

  /** Deletes changes older than `days` in steps, oldest first, and returns the number of rows. */
  async purge(days: number, limit: number): Promise<number> {
    // Committed first: a reader must refuse a cursor before the first row after it is gone.
    await sql(
      this.manager,
      `UPDATE catalog_versions v SET kept_after = b.last
       FROM (SELECT mode, coalesce(
               (SELECT c.position - 1 FROM catalog_changes c
                WHERE c.mode = h.mode AND c.at >= now() - $1::int * interval '1 day'
                ORDER BY c.position LIMIT 1), h.position) AS last
             FROM catalog_versions h) AS b
       WHERE v.mode = b.mode AND v.kept_after < b.last`,
      [days],
    );
    const { affected } = await sql(
      this.manager,
      `DELETE FROM catalog_changes WHERE ctid = ANY (ARRAY(
         SELECT c.ctid FROM catalog_versions v JOIN catalog_changes c ON c.mode = v.mode AND c.position <= v.kept_after
         LIMIT $1 FOR UPDATE OF c SKIP LOCKED))`,
      [limit],
    );
    return affected;
  }

  /**
   * Moves version and position above all that were ever used, provided that the clock moves forward. After a restore,
   * readers may be past the restored ones: their cursors are refused, and their ETags are out of date (D54).
   */
  async restart(tx: Tx): Promise<void> {
    await sql(
      tx.manager,
      `UPDATE catalog_versions SET version = greatest(version, c.ms) + 1, position = greatest(position, c.ms) + 1,
         kept_after = greatest(position, c.ms) + 1
       FROM (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS ms) AS c`,
    );
  }
}

function toChange(row: ChangeRow): LoggedChange {
  return {
    position: toSafeInteger(row.position),
    packageId: row.package_id,
    kind: row.kind,
    changed: row.changed,
    at: row.at,
  };
}
