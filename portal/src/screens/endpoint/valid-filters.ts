import { EVENT_TYPES } from '../../api/types.ts';

export const STATUSES = ['pending', 'delivered', 'failed', 'held', 'discarded'] as const;
export const OUTCOMES = ['delivered', 'failed', 'interrupted'] as const;
export const TYPES = [...EVENT_TYPES, 'webhook.test'] as const;
export const EVENT_ID = /^evt_[0-9A-Z]{1,60}$/;
export const STATUS_CODE = /^[1-5]\d\d$/;

const MOMENT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;

const oneOf = (values: readonly string[]) => (value: string) => values.includes(value);
const like = (pattern: RegExp) => (value: string) => pattern.test(value);
const isMoment = (value: string) => MOMENT.test(value) && !Number.isNaN(Date.parse(value));

const VALID = {
  status: oneOf(STATUSES),
  event_type: oneOf(TYPES),
  event_id: like(EVENT_ID),
  status_code: like(STATUS_CODE),
  outcome: oneOf(OUTCOMES),
  created_after: isMoment,
  created_before: isMoment,
} as const satisfies Record<string, (value: string) => boolean>;

export type Filter = keyof typeof VALID;
export const FILTERS = Object.keys(VALID) as Filter[];

type Search = { [name in Filter]?: string };
type Chosen = { filters: Search; ignored: { name: Filter; value: string }[] };

/** The address's filters without those that the server would refuse, because an address may come from anywhere. */
export function validFilters(search: Search): Chosen {
  const filters: Search = {};
  const ignored: Chosen['ignored'] = [];
  for (const name of FILTERS) {
    const value = search[name];
    if (value === undefined) continue;
    if (VALID[name](value)) filters[name] = value;
    else ignored.push({ name, value });
  }
  return { filters, ignored };
}
