import { ENDPOINTS, PARTNERS } from './scale.js';

/**
 * What every fill needs beside the tables: the steps that are done, so that an interrupted fill goes on, and the ids.
 * An id is a ULID of its row's time; the same row has the same id in every table, so that none has to be read for another.
 */
export const CREATE_FILL = `
  CREATE SCHEMA IF NOT EXISTS growth;
  CREATE TABLE IF NOT EXISTS growth.scale (orders bigint NOT NULL, deliveries bigint NOT NULL, anchor timestamptz NOT NULL,
                                           share float8 NOT NULL DEFAULT 1);
  CREATE TABLE IF NOT EXISTS growth.steps (name text PRIMARY KEY, rows bigint NOT NULL);
  CREATE OR REPLACE FUNCTION growth.id(prefix text, ms bigint, n bigint) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT prefix || '_' || ${digits()} || upper(left(md5(n::text), 16))
  $$;
  CREATE OR REPLACE FUNCTION growth.owned(prefix text, partner int, slot int) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT prefix || '_' || lpad((partner * 100 + slot)::text, 26, '0')
  $$;
`;

/** 48 bits of milliseconds in ten digits of Crockford's base 32. */
function digits(): string {
  return Array.from(
    { length: 10 },
    (_, index) => `substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + ((ms >> ${45 - 5 * index}) & 31)::int, 1)`,
  ).join(' || ');
}

/** Rows `first` to `first + count - 1` of one day. */
export interface Numbers {
  readonly first: number;
  readonly count: number;
  readonly fromMs: number;
  readonly toMs: number;
}

/**
 * A FROM item `r` with the number, the time and the partner of every row: one partner owns a third, and the more of the
 * others the smaller their number is.
 */
export function rowsOf({ first, count, fromMs, toMs }: Numbers): string {
  return `(
    SELECT n, n - ${first} AS k, h, ms, to_timestamp(ms / 1000.0) AS at,
           CASE WHEN h % 3 = 0 THEN 1
                ELSE 2 + floor(${PARTNERS - 1} * power((h / 3 % 1000000) / 1000000.0::float8, 2))::int END AS p
    FROM (SELECT n, hashint8(n)::bigint & 2147483647 AS h,
                 ${fromMs} + ((n - ${first})::float8 * ${toMs - fromMs} / ${count})::bigint AS ms
          FROM generate_series(${first}::bigint, ${first + count - 1}) AS n OFFSET 0) AS numbered
    OFFSET 0) AS r`;
}

/** Three of ten orders are Sandbox orders. */
export const ORDER_MODE = `CASE WHEN h / 7 % 10 < 3 THEN 'sandbox' ELSE 'live' END`;
export const PARTNER_ID = `growth.owned('ptn', p, 0)`;

/** The slots of a partner's ids: keys and endpoints of its modes. */
export function keySlot(mode: 'live' | 'sandbox'): number {
  return mode === 'live' ? 1 : 2;
}

export function endpointSlot(mode: 'live' | 'sandbox', nth: number): number {
  return 10 + (mode === 'live' ? 0 : ENDPOINTS) + nth;
}

/** An id as `growth.owned` makes it. */
export function ownedId(prefix: string, partner: number, slot: number): string {
  return `${prefix}_${String(partner * 100 + slot).padStart(26, '0')}`;
}
