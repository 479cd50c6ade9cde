import type { Account, Esim, Money, Order, Package, ServiceEvent, Topup, Usage } from '../partner-api.js';

/** JSON Schema, as far as the tools use it. */
export interface Schema {
  readonly type?: string;
  readonly description?: string;
  readonly enum?: readonly string[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
}

/** The names of all values of a union. The compiler refuses a missing and an unknown one. */
const all = <T extends string>(values: Readonly<Record<T, true>>): readonly T[] => Object.keys(values) as T[];

export const PACKAGE_KINDS = all<Package['kind']>({ base: true, topup: true });

export const REGIONS = all<NonNullable<Package['region']>>({
  africa: true,
  asia: true,
  balkans: true,
  caribbean: true,
  europe: true,
  'latin-america': true,
  'middle-east': true,
  'north-america': true,
  oceania: true,
});

export const ORDER_STATUSES = all<Order['status']>({
  pending: true,
  processing: true,
  issued: true,
  partially_issued: true,
  failed: true,
  canceling: true,
  canceled: true,
});

export const ESIM_STATUSES = all<Esim['status']>({
  issued: true,
  active: true,
  depleted: true,
  expired: true,
  suspended: true,
  canceled: true,
});

const TOPUP_STATUSES = all<Topup['status']>({
  pending: true,
  processing: true,
  completed: true,
  failed: true,
});

export const EVENT_TYPES = all<ServiceEvent['type']>({
  'order.issued': true,
  'order.failed': true,
  'order.canceled': true,
  'order.topup.completed': true,
  'order.topup.failed': true,
  'esim.activated': true,
  'esim.expired': true,
  'esim.expiring': true,
  'esim.usage.threshold': true,
  'esim.usage.level': true,
  'esim.profile.changed': true,
  'esim.suspended': true,
  'esim.resumed': true,
  'esim.revoked': true,
  'refund.settled': true,
  'wallet.low': true,
  'catalog.changed': true,
});

const STRING: Schema = { type: 'string' };
const INTEGER: Schema = { type: 'integer' };
const BOOLEAN: Schema = { type: 'boolean' };
const oneOf = (values: readonly string[]): Schema => ({ type: 'string', enum: values });
const orNull = (schema: Schema): Schema => ({ anyOf: [schema, { type: 'null' }] });
const listOf = (items: Schema): Schema => ({ type: 'array', items });

/**
 * An object of type `T` that always has these fields, which are the ones that a model needs. It has others, and may get
 * more, because the API grows.
 */
const object = <T = Readonly<Record<string, unknown>>>(
  properties: Readonly<Partial<Record<keyof T & string, Schema>>>,
): Schema => ({
  type: 'object',
  properties: properties as Readonly<Record<string, Schema>>,
  required: Object.keys(properties),
});

const MODE = oneOf(['sandbox', 'live']);
const MONEY = object<Money>({ amount: { type: 'integer', description: 'minor units' }, currency: STRING });
const FAILURE = orNull(object({ code: STRING, reason: STRING }));

const page = (items: Schema): Schema =>
  object({ data: listOf(items), hasMore: BOOLEAN, nextCursor: orNull(STRING) });

export const ACCOUNT = object<Account>({
  partner_id: STRING,
  partner_name: STRING,
  mode: MODE,
  key_id: STRING,
});

export const PACKAGE = object<Package>({
  id: STRING,
  title: STRING,
  kind: oneOf(PACKAGE_KINDS),
  coverage: listOf(STRING),
  data_bytes: orNull({ type: 'integer', description: 'null: unlimited' }),
  data_label: orNull(STRING),
  validity_days: INTEGER,
  price: MONEY,
  available: BOOLEAN,
});
export const PACKAGES = page(PACKAGE);

export const ORDER = object<Order>({
  id: STRING,
  mode: MODE,
  status: oneOf(ORDER_STATUSES),
  package_id: STRING,
  quantity: INTEGER,
  unit_price: MONEY,
  total: MONEY,
  refunded: MONEY,
  reference: orNull(STRING),
  esims: listOf(object({ esim_id: STRING, iccid: STRING, status: STRING })),
  failure: FAILURE,
  created_at: STRING,
});
export const ORDERS = page(ORDER);

export const TOPUP = object<Topup>({
  id: STRING,
  mode: MODE,
  status: oneOf(TOPUP_STATUSES),
  esim_id: STRING,
  package_id: STRING,
  price: MONEY,
  failure: FAILURE,
  created_at: STRING,
});

export const ESIM = object<Esim>({
  id: STRING,
  mode: MODE,
  status: oneOf(ESIM_STATUSES),
  order_id: STRING,
  package_id: STRING,
  iccid: STRING,
  label: orNull(STRING),
  expires_at: orNull(STRING),
});
export const ESIMS = page(ESIM);

export const USAGE = object<Usage>({
  esim_id: STRING,
  unlimited: BOOLEAN,
  total_bytes: orNull(INTEGER),
  used_bytes: INTEGER,
  remaining_bytes: orNull(INTEGER),
  as_of: STRING,
});

export const EVENTS = page(
  object<ServiceEvent>({
    id: STRING,
    type: oneOf(EVENT_TYPES),
    created_at: STRING,
    data: { type: 'object' },
  }),
);

export const BALANCES = object({
  balances: listOf(object({ currency: STRING, posted: MONEY, held: MONEY, available: MONEY })),
});

/** The purchase that a write would make. Nothing has happened yet. */
export const PREVIEW = object({
  mode: MODE,
  package_id: STRING,
  title: STRING,
  quantity: INTEGER,
  unit_price: MONEY,
  total: MONEY,
  confirm_token: STRING,
  expires_at: STRING,
  next_step: STRING,
});

/** The result of a write: the preview of the first call, or the purchase of the second. */
export const previewOr = (name: string, bought: Schema): Schema =>
  object({ preview: orNull(PREVIEW), [name]: orNull(bought) });
