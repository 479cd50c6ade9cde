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

/** @throws CliError when the argument is missing or no text */
function textOf(args: Arguments, name: string): string {
  const value = args[name];
  if (typeof value !== 'string' || value === '')
    throw new CliError(EXIT.usage, `${name} is missing or is not text: pass it as a string`);
  return value;
}

function optionalText(args: Arguments, name: string): string | undefined {
  return args[name] === undefined ? undefined : textOf(args, name);
}

function optionalNumber(args: Arguments, name: string): number | undefined {
  const value = args[name];
  if (value === undefined) return undefined;
  if (typeof value !== 'number')
    throw new CliError(EXIT.usage, `${name} is not a number: pass it as an integer`);
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
      cursor: text('nextCursor of the page before'),
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
    description: 'One order with its eSIMs and, where it failed, the reason.',
    writes: false,
    properties: { order_id: text('ord_…') },
    required: ['order_id'],
    run: (api, args) => api.order(textOf(args, 'order_id')),
  },
  {
    name: 'get_esim',
    description: 'State and data of an eSIM, without what it is installed with.',
    writes: false,
    properties: { esim_id: text('esim_…') },
    required: ['esim_id'],
    run: (api, args) => api.esim(textOf(args, 'esim_id')),
  },
  {
    name: 'get_usage',
    description: 'How much data of an eSIM is used.',
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
      'Buys eSIMs. The same idempotency_key buys nothing twice: make one for each intent and keep it.',
    writes: true,
    properties: {
      package_id: text('pkg_…'),
      quantity: number('1 to 20'),
      reference: text("the partner's own id"),
      idempotency_key: text('8 to 128 letters, digits, - or _'),
    },
    required: ['package_id', 'idempotency_key'],
    run: (api, args) =>
      api.placeOrder(
        {
          package_id: textOf(args, 'package_id'),
          quantity: optionalNumber(args, 'quantity') ?? 1,
          ...(args['reference'] === undefined ? {} : { reference: textOf(args, 'reference') }),
        },
        textOf(args, 'idempotency_key'),
      ),
  },
  {
    name: 'place_topup',
    description: 'Buys data or days for an eSIM. The same idempotency_key buys nothing twice.',
    writes: true,
    properties: {
      esim_id: text('esim_…'),
      package_id: text('a top-up package'),
      idempotency_key: text('8 to 128 letters, digits, - or _'),
    },
    required: ['esim_id', 'package_id', 'idempotency_key'],
    run: (api, args) =>
      api.placeTopup(
        { esim_id: textOf(args, 'esim_id'), package_id: textOf(args, 'package_id') },
        textOf(args, 'idempotency_key'),
      ),
  },
];
