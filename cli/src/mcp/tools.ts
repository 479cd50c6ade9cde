import { CliError, EXIT } from '../exit-codes.js';
import type { Money, Package, PartnerApi } from '../partner-api.js';
import type { Confirmed } from './confirmations.js';
import {
  ACCOUNT,
  BALANCES,
  ESIM,
  ESIM_STATUSES,
  ESIMS,
  EVENT_TYPES,
  EVENTS,
  ORDER,
  ORDER_STATUSES,
  ORDERS,
  PACKAGE,
  PACKAGE_KINDS,
  PACKAGES,
  previewOr,
  REGIONS,
  type Schema,
  TOPUP,
  USAGE,
} from './schemas.js';

/** Validated arguments: only known ones, each of its type. */
export class Arguments {
  constructor(private readonly values: Readonly<Record<string, unknown>>) {}

  /** A required text, which validation has found. */
  text(name: string): string {
    return this.values[name] as string;
  }

  optionalText(name: string): string | undefined {
    return this.values[name] as string | undefined;
  }

  optionalNumber(name: string): number | undefined {
    return this.values[name] as number | undefined;
  }
}

interface Described {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly properties: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly output: Schema;
}

/** A call that reads. */
export interface ReadTool extends Described {
  run(api: PartnerApi, args: Arguments): Promise<object>;
}

/** A purchase. Its first call previews it, and its second call, with the token of the preview, makes it. */
export interface WriteTool extends Described {
  /** Name of the purchase in the result. */
  readonly buys: string;
  preview(api: PartnerApi, args: Arguments): Promise<Preview>;
  buy(api: PartnerApi, args: Arguments, confirmed: Confirmed): Promise<object>;
}

export interface Preview {
  readonly package_id: string;
  readonly title: string;
  readonly quantity: number;
  readonly unit_price: Money;
}

export type Tool = ReadTool | WriteTool;

export const isWriteTool = (tool: Tool): tool is WriteTool => 'preview' in tool;

const text = (description: string, values?: readonly string[]): Schema => ({
  type: 'string',
  description,
  ...(values === undefined ? {} : { enum: values }),
});
const number = (description: string, minimum: number, maximum: number): Schema => ({
  type: 'integer',
  description,
  minimum,
  maximum,
});

const LIMIT = number('items per page', 1, 100);
const CURSOR = text('nextCursor of the previous page');
const DAYS = number('number of days, only for a package with plan.days', 1, 365);
const WAIT = number('seconds to wait for the end of the purchase', 0, 25);

/**
 * Checks arguments against the tool's schema.
 * @throws CliError that names the wrong argument
 */
export function checked(tool: Tool, given: Readonly<Record<string, unknown>>): Arguments {
  const properties = propertiesOf(tool);
  const fail = (problem: string): never => {
    throw new CliError(EXIT.usage, problem);
  };
  for (const [name, value] of Object.entries(given)) {
    if (!Object.hasOwn(properties, name)) fail(`there is no argument ${name}. Leave it out.`);
    const schema = properties[name]!;
    const isRight =
      schema.type === 'integer' ? Number.isInteger(value) : typeof value === 'string' && value !== '';
    if (!isRight) fail(`${name} is not ${schema.type === 'integer' ? 'an integer' : 'a text'}.`);
    if (schema.enum !== undefined && !schema.enum.includes(value as string))
      fail(`${name} must be one of ${schema.enum.join(', ')}.`);
    const { minimum = -Infinity, maximum = Infinity } = schema;
    if (typeof value === 'number' && (value < minimum || value > maximum))
      fail(`${name} must be ${minimum} to ${maximum}.`);
  }
  for (const name of tool.required ?? []) if (given[name] === undefined) fail(`${name} is missing.`);
  return new Arguments(given);
}

/** The tool's arguments. Those of a purchase include the token of its preview. */
export function propertiesOf(tool: Tool): Readonly<Record<string, Schema>> {
  if (!isWriteTool(tool)) return tool.properties;
  return { ...tool.properties, confirm_token: text('confirm_token of the preview, to make the purchase') };
}

/** Networks of a global package fill pages, so a list leaves them out. */
function shortened({ networks: _networks, ...shown }: Package): object {
  return shown;
}

export const TOOLS: readonly Tool[] = [
  {
    name: 'whoami',
    title: 'Account',
    description: 'The partner and mode (sandbox or live) of the API key.',
    properties: {},
    output: ACCOUNT,
    run: (api) => api.me(),
  },
  {
    name: 'search_catalog',
    title: 'Search the catalog',
    description: 'Packages that can be ordered, with prices in minor units and data in bytes.',
    properties: {
      country: text('two upper-case letters'),
      region: text('a region of several countries', REGIONS),
      kind: text('base (default) or topup', PACKAGE_KINDS),
      limit: LIMIT,
      cursor: CURSOR,
    },
    output: PACKAGES,
    run: async (api, args) => {
      const page = await api.packages({
        country: args.optionalText('country'),
        region: args.optionalText('region'),
        kind: args.optionalText('kind') ?? 'base',
        limit: args.optionalNumber('limit'),
        cursor: args.optionalText('cursor'),
      });
      return { ...page, data: page.data.map(shortened) };
    },
  },
  {
    name: 'get_package',
    title: 'Get a package',
    description: 'One package with its networks, priced for a number of days if it is sold by days.',
    properties: { package_id: text('pkg_…'), days: DAYS },
    required: ['package_id'],
    output: PACKAGE,
    run: (api, args) => api.package(args.text('package_id'), args.optionalNumber('days')),
  },
  {
    name: 'list_orders',
    title: 'List orders',
    description: 'Orders, newest first.',
    properties: {
      status: text('only orders of this status', ORDER_STATUSES),
      reference: text("the partner's own id"),
      limit: LIMIT,
      cursor: CURSOR,
    },
    output: ORDERS,
    run: (api, args) =>
      api.orders({
        status: args.optionalText('status'),
        reference: args.optionalText('reference'),
        limit: args.optionalNumber('limit'),
        cursor: args.optionalText('cursor'),
      }),
  },
  {
    name: 'get_order',
    title: 'Get an order',
    description: 'One order with its eSIMs, and the reason if it failed.',
    properties: { order_id: text('ord_…'), wait_seconds: WAIT },
    required: ['order_id'],
    output: ORDER,
    run: (api, args) => api.order(args.text('order_id'), args.optionalNumber('wait_seconds')),
  },
  {
    name: 'list_esims',
    title: 'List eSIMs',
    description: 'eSIMs, newest first, without install data.',
    properties: {
      status: text('only eSIMs of this status', ESIM_STATUSES),
      order_id: text('ord_…'),
      iccid: text('the number of the eSIM'),
      label: text('the label that the partner gave it'),
      limit: LIMIT,
      cursor: CURSOR,
    },
    output: ESIMS,
    run: (api, args) =>
      api.esims({
        status: args.optionalText('status'),
        order_id: args.optionalText('order_id'),
        iccid: args.optionalText('iccid'),
        label: args.optionalText('label'),
        limit: args.optionalNumber('limit'),
        cursor: args.optionalText('cursor'),
      }),
  },
  {
    name: 'get_esim',
    title: 'Get an eSIM',
    description: 'Status and data of an eSIM, without install data.',
    properties: { esim_id: text('esim_…') },
    required: ['esim_id'],
    output: ESIM,
    run: (api, args) => api.esim(args.text('esim_id')),
  },
  {
    name: 'get_usage',
    title: 'Get the usage of an eSIM',
    description: 'Data usage of an eSIM.',
    properties: { esim_id: text('esim_…') },
    required: ['esim_id'],
    output: USAGE,
    run: (api, args) => api.usage(args.text('esim_id')),
  },
  {
    name: 'list_topup_packages',
    title: 'List fitting top-ups',
    description: 'Packages that can top up an eSIM now.',
    properties: { esim_id: text('esim_…') },
    required: ['esim_id'],
    output: PACKAGES,
    run: async (api, args) => {
      const page = await api.topupPackages(args.text('esim_id'));
      return { ...page, data: page.data.map(shortened) };
    },
  },
  {
    name: 'get_topup',
    title: 'Get a top-up',
    description: 'One top-up, and the reason if it failed.',
    properties: { topup_id: text('top_…'), wait_seconds: WAIT },
    required: ['topup_id'],
    output: TOPUP,
    run: (api, args) => api.topup(args.text('topup_id'), args.optionalNumber('wait_seconds')),
  },
  {
    name: 'list_events',
    title: 'List events',
    description: 'Events, oldest first.',
    properties: {
      type: text('only events of this type', EVENT_TYPES),
      subject: text('only events of this order, eSIM or top-up: its id'),
      after: text('a cursor or event id'),
      limit: LIMIT,
    },
    output: EVENTS,
    run: (api, args) =>
      api.events(
        {
          type: args.optionalText('type'),
          subject: args.optionalText('subject'),
          after: args.optionalText('after'),
        },
        args.optionalNumber('limit') ?? 25,
      ),
  },
  {
    name: 'get_balance',
    title: 'Get the balance',
    description: 'The wallet, in minor units.',
    properties: {},
    output: BALANCES,
    run: async (api) => ({ balances: await api.balance() }),
  },
  {
    name: 'place_order',
    title: 'Order eSIMs',
    description:
      'Buys eSIMs in two calls. The first call buys nothing and returns a preview with the price and a confirm_token. Show it to the person. The second call, with the same arguments and confirm_token, buys. Repeating the second call does not buy again.',
    properties: {
      package_id: text('a package of kind base: pkg_…'),
      quantity: number('number of eSIMs, by default 1', 1, 20),
      days: DAYS,
      reference: text("the partner's own id of the purchase, unique forever"),
    },
    required: ['package_id'],
    output: previewOr('order', ORDER),
    buys: 'order',
    preview: (api, args) =>
      previewOf(
        api,
        args.text('package_id'),
        args.optionalNumber('days'),
        args.optionalNumber('quantity') ?? 1,
      ),
    buy: (api, args, { idempotencyKey, unitPrice }) =>
      api.placeOrder(
        {
          package_id: args.text('package_id'),
          quantity: args.optionalNumber('quantity') ?? 1,
          days: args.optionalNumber('days') ?? null,
          reference: args.optionalText('reference') ?? null,
          max_unit_price: unitPrice,
        },
        idempotencyKey,
      ),
  },
  {
    name: 'place_topup',
    title: 'Top an eSIM up',
    description:
      'Buys data or days for an eSIM in two calls. The first call buys nothing and returns a preview with the price and a confirm_token. Show it to the person. The second call, with the same arguments and confirm_token, buys. Repeating the second call does not buy again.',
    properties: {
      esim_id: text('esim_…'),
      package_id: text('one of list_topup_packages: pkg_…'),
      days: DAYS,
      reference: text("the partner's own id of the purchase, unique forever"),
    },
    required: ['esim_id', 'package_id'],
    output: previewOr('topup', TOPUP),
    buys: 'topup',
    preview: (api, args) => previewOf(api, args.text('package_id'), args.optionalNumber('days'), 1),
    buy: (api, args, { idempotencyKey, unitPrice }) =>
      api.placeTopup(
        {
          esim_id: args.text('esim_id'),
          package_id: args.text('package_id'),
          days: args.optionalNumber('days') ?? null,
          reference: args.optionalText('reference') ?? null,
          max_price: unitPrice,
        },
        idempotencyKey,
      ),
  },
];

async function previewOf(
  api: PartnerApi,
  packageId: string,
  days: number | undefined,
  quantity: number,
): Promise<Preview> {
  const { id, title, price } = await api.package(packageId, days);
  return { package_id: id, title, quantity, unit_price: price };
}
