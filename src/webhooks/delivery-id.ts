import { newId } from '../common/ids.js';

/** The part of delivery ids that one statement's rows share: prefix, time and one random character. */
export function deliveryIdStem(): string {
  return newId('dlv').slice(0, 15);
}

/**
 * SQL that completes a stem, different for every row: hexadecimal digits are Crockford digits too, so the result
 * is a well-formed ULID (D10). The first half of a UUID holds fixed bits; the last 15 digits are all random.
 */
export function deliveryIdSql(stem: string): string {
  return `${stem} || upper(right(replace(gen_random_uuid()::text, '-', ''), 15))`;
}
