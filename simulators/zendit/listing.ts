import type { Faults } from './faults.ts';
import { Refusal } from './ledger.ts';

const MAX_PAGE = 1_024;
/** `gte2026-01-01T00:00:00Z`; without an operator it means exactly that time. */
const MOMENT = /^(gte|lte|gt|lt|eq)?(\d{4}-\d{2}-\d{2}T.+)$/;

const COMPARISONS: Readonly<Record<string, (ms: number, momentMs: number) => boolean>> = {
  gte: (ms, momentMs) => ms >= momentMs,
  lte: (ms, momentMs) => ms <= momentMs,
  gt: (ms, momentMs) => ms > momentMs,
  lt: (ms, momentMs) => ms < momentMs,
  eq: (ms, momentMs) => ms === momentMs,
};

/** The page selected by `_limit` and `_offset`. @throws Refusal 400 */
export function page(
  query: URLSearchParams,
  { maxPageSize }: Pick<Faults, 'maxPageSize'>,
  all: readonly unknown[],
): Record<string, unknown> {
  const limit = Number(query.get('_limit') ?? NaN);
  const offset = Number(query.get('_offset') ?? NaN);
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_PAGE || !Number.isInteger(offset) || offset < 0)
    throw new Refusal(400, {
      errorCode: 'INVALID_REQUEST',
      message: '_limit (1 to 1024) and _offset are required',
      fields: { _limit: '1 to 1024' },
    });
  return {
    limit,
    offset,
    total: all.length,
    list: all.slice(offset, offset + Math.min(limit, maxPageSize)),
  };
}

/** Whether a value matches the filter; true without the filter. */
export function passes(query: URLSearchParams, filter: string, ...values: readonly string[]): boolean {
  const wanted = query.get(filter);
  return wanted === null || values.includes(wanted);
}

/** Whether a time in ms matches the query's `createdAt`. @throws Refusal 400 for an invalid time */
export function isCreatedAsAsked(query: URLSearchParams, createdAtMs: number): boolean {
  const wanted = query.get('createdAt');
  if (wanted === null) return true;
  const match = MOMENT.exec(wanted);
  const momentMs = Date.parse(match?.[2] ?? '');
  if (Number.isNaN(momentMs))
    throw new Refusal(400, {
      errorCode: 'INVALID_REQUEST',
      message: 'createdAt is no time',
      fields: { createdAt: wanted },
    });
  return COMPARISONS[match?.[1] ?? 'eq']!(createdAtMs, momentMs);
}
