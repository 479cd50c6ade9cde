import { CliError, EXIT } from '../exit-codes.js';
import type { PartnerApi } from '../partner-api.js';

type Arguments = Readonly<Record<string, unknown>>;

/** A call that a model may make. */
export interface Tool {
  readonly name: string;
  readonly description: string;
  readonly writes: boolean;
  readonly properties: Readonly<Record<string, { readonly type: string; readonly description: string }>>;
  readonly required?: readonly string[];
  run(api: PartnerApi, args: Arguments): Promise<unknown>;
}

const text = (description: string): { type: string; description: string } => ({
  type: 'string',
  description,
});
const number = (description: string): { type: string; description: string } => ({
  type: 'integer',
  description,
});

/** @throws CliError when the argument is missing or not a string */
function textOf(args: Arguments, name: string): string {
  const value = args[name];
  if (typeof value !== 'string' || value === '')
    throw new CliError(EXIT.usage, `${name} is missing or not a string. Pass it as a string.`);
  return value;
}

function optionalText(args: Arguments, name: string): string | undefined {
  return args[name] === undefined ? undefined : textOf(args, name);
}

function optionalNumber(args: Arguments, name: string): number | undefined {
  const value = args[name];
  if (value === undefined) return undefined;
  if (typeof value !== 'number')
    throw new CliError(EXIT.usage, `${name} is not a number. Pass it as an integer.`);
  return value;
}

export const TOOLS: readonly Tool[] = [
  {
    name: 'whoami',
    description: 'The partner and mode (sandbox or live) of the API key.',
    writes: false,
    properties: {},
    run: (api) => api.me(),
  },
  {
    name: 'search_catalog',
    description: 'Packages that can be ordered, with prices in minor units and data in bytes.',
    writes: false,
    properties: {
      country: text('two upper-case letters'),
      region: text('e.g. europe'),
      kind: text('base or topup'),
      limit: number('1 to 100'),
      cursor: text('nextCursor of the previous page'),
    },
    run: (api, args) =>
      api.packages({
        country: optionalText(args, 'country'),
        region: optionalText(args, 'region'),
        kind: optionalText(args, 'kind') ?? 'base',
        limit: optionalNumber(args, 'limit'),
        cursor: optionalText(args, 'cursor'),
      }),
  },
  {
    name: 'list_orders',
    description: 'Orders, newest first.',
    writes: false,
    properties: {
      status: text('e.g. issued or failed'),
      reference: text("the partner's own id"),
      limit: number('1 to 100'),
    },
    run: (api, args) =>
      api.orders({
        status: optionalText(args, 'status'),
        reference: optionalText(args, 'reference'),
        limit: optionalNumber(args, 'limit'),
      }),
  },
  {
    name: 'get_order',
    description: 'One order with its eSIMs, and the reason if it failed.',
    writes: false,
    properties: { order_id: text('ord_…') },
    required: ['order_id'],
    run: (api, args) => api.order(textOf(args, 'order_id')),
  },
  {
    name: 'get_esim',
    description: 'Status and data of an eSIM, without install data.',
    writes: false,
    properties: { esim_id: text('esim_…') },
    required: ['esim_id'],
    run: (api, args) => api.esim(textOf(args, 'esim_id')),
  },
  {
    name: 'get_usage',
    description: 'Data usage of an eSIM.',
    writes: false,
    properties: { esim_id: text('esim_…') },
    required: ['esim_id'],
    run: (api, args) => api.usage(textOf(args, 'esim_id')),
  },
  {
    name: 'list_events',
    description: 'Events, oldest first.',
    writes: false,
    properties: {
      type: text('an event type'),
      after: text('a cursor or event id'),
      limit: number('1 to 100'),
    },
    run: (api, args) =>
      api.events(
        {
          type: optionalText(args, 'type'),
          after: optionalText(args, 'after'),
        },
        optionalNumber(args, 'limit') ?? 25,
      ),
  },
  {
    name: 'get_balance',
    description: 'The wallet, in minor units.',
    writes: false,
    properties: {},
    run: (api) => api.balance(),
  },
  {
    name: 'place_order',
    description:
      'Buys eSIMs. A repeated call with the same idempotency_key does not buy again. Create one key per purchase and keep it.',
    writes: true,
    properties: {
      package_id: text('pkg_…'),
      quantity: number('1 to 20'),
      days: number('only for a package with plan.days'),
      reference: text("the partner's own id"),
      idempotency_key: text('8 to 128 letters, digits, - or _'),
    },
    required: ['package_id', 'idempotency_key'],
    run: (api, args) =>
      api.placeOrder(
        {
          package_id: textOf(args, 'package_id'),
          quantity: optionalNumber(args, 'quantity') ?? 1,
          days: optionalNumber(args, 'days') ?? null,
          ...(args['reference'] === undefined ? {} : { reference: textOf(args, 'reference') }),
        },
        textOf(args, 'idempotency_key'),
      ),
  },
  {
    name: 'place_topup',
    description:
      'Buys data or days for an eSIM. A repeated call with the same idempotency_key does not buy again.',
    writes: true,
    properties: {
      esim_id: text('esim_…'),
      package_id: text('a top-up package'),
      days: number('only for a package with plan.days'),
      idempotency_key: text('8 to 128 letters, digits, - or _'),
    },
    required: ['esim_id', 'package_id', 'idempotency_key'],
    run: (api, args) =>
      api.placeTopup(
        {
          esim_id: textOf(args, 'esim_id'),
          package_id: textOf(args, 'package_id'),
          days: optionalNumber(args, 'days') ?? null,
        },
        textOf(args, 'idempotency_key'),
      ),
  },
];
