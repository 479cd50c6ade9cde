import type { Command } from '../command.js';
import type { Context } from '../context.js';
import { EXIT, type ExitCode, usageError } from '../exit-codes.js';
import type { Order } from '../partner-api.js';
import { ORDER, Purchase } from '../purchase.js';
import { counted, moneyText } from '../terminal/values.js';
import { chosenDays, oneOf, wholeNumber } from './values.js';

function show({ output, live }: Context, order: Order): void {
  const paint = order.status === 'issued' ? output.good.bind(output) : output.bold.bind(output);
  output.line(
    `${output.bold(order.id)}  ${paint(order.status)}  ${boughtText(order)}  ${moneyText(order.total)}`,
  );
  if (order.reference) output.line(`  reference ${order.reference}`);
  for (const esim of order.esims) {
    output.line(`  ${esim.esim_id}  iccid ${esim.iccid}  ${esim.status}`);
    output.line(`  install: esim esims get ${esim.esim_id}${live ? ' --live' : ''}`);
  }
  if (order.failure) output.line(`  ${output.bad(order.failure.code)}: ${order.failure.reason}`);
  output.data(order);
}

export const ordersPlace: Command = {
  name: 'orders place',
  summary: 'place an order, and wait for its outcome with --wait',
  arguments: '[package]',
  details: `Each order has one idempotency key. The command prints the key to stderr before it sends the order. If the command is
interrupted, repeat it with --idempotency-key: you get the same order and never pay twice. With --json, an error has
idempotency_key and order_id while the outcome is unknown.`,
  options: {
    package: {
      type: 'string',
      short: 'p',
      value: 'id',
      help: 'the package id, instead of the argument (see esim catalog)',
    },
    quantity: { type: 'string', short: 'q', value: 'n', help: 'number of eSIMs, 1 (default) to 20' },
    days: { type: 'string', short: 'd', value: 'n', help: 'number of days, for a package with plan.days' },
    reference: { type: 'string', value: 'text', help: 'your own id for the order' },
    wait: { type: 'boolean', short: 'w', help: 'wait for the outcome of the order' },
    timeout: { type: 'string', value: 'seconds', help: 'how long --wait waits (default: 60)' },
    'idempotency-key': { type: 'string', value: 'key', help: 'the key of an earlier attempt' },
  },
  examples: [
    { command: 'esim orders place pkg_fr_1gb_7d --wait', says: 'order one eSIM in the Sandbox' },
    { command: 'esim orders place pkg_fr_2gb_daily --days 5', says: 'order five days of a daily pass' },
    {
      command: 'esim orders place <package> -q 3 --reference booking-4711 --live',
      says: 'order three eSIMs with real money; esim catalog --live lists packages',
    },
  ],
  run: async (context, options, [argument]) => {
    const packageId = oneOf(options, 'package', argument);
    if (packageId === undefined)
      throw usageError(
        'the package is missing',
        `Pass its id: \`esim orders place ${context.live ? '<package> --live' : 'pkg_fr_1gb_7d'}\`. \`esim catalog${context.live ? ' --live' : ''}\` lists packages.`,
      );
    const withinSeconds = wholeNumber(options, 'timeout', 60);
    const api = context.writableApi;
    const order = {
      package_id: packageId,
      quantity: wholeNumber(options, 'quantity', 1),
      ...chosenDays(options),
      reference: options.text('reference') ?? null,
    };
    const purchase = new Purchase(context, api, ORDER, options.text('idempotency-key'));
    const placed = await purchase.place(order);
    if (!options.flag('wait')) return shown(context, placed);
    return shown(context, await purchase.end(placed, withinSeconds), true);
  },
};

function boughtText({ package_id, quantity, days }: Order): string {
  return `${package_id} x ${quantity}${days === null ? '' : `, ${counted(days, 'day')}`}`;
}

/** @param mustBeIssued makes an order that was not fully issued a failure */
function shown(context: Context, order: Order, mustBeIssued = false): ExitCode {
  show(context, order);
  return mustBeIssued && order.status !== 'issued' ? EXIT.failed : EXIT.ok;
}

function requireOrder(id: string | undefined): asserts id is string {
  if (id === undefined)
    throw usageError('the order is missing', 'Pass its id. `esim orders list` lists your orders.');
}

export const ordersGet: Command = {
  name: 'orders get',
  summary: 'show an order',
  arguments: '<order>',
  examples: [
    { command: 'esim orders get ord_01M7SJ8EH4V8DA1TCQEKT9GHZ7', says: 'show its status and eSIMs' },
  ],
  run: async (context, _options, [id]) => {
    requireOrder(id);
    return shown(context, await context.api.order(id));
  },
};

export const ordersCancel: Command = {
  name: 'orders cancel',
  summary: 'cancel an order whose eSIMs are all unused, and get its money back',
  arguments: '<order>',
  details: `The order is canceling until the wholesaler confirms. If it cannot be canceled, \`esim refunds create\` requests a
refund of one eSIM.`,
  examples: [{ command: 'esim orders cancel ord_01M7SJ8EH4V8DA1TCQEKT9GHZ7', says: 'cancel all its eSIMs' }],
  run: async (context, _options, [id]) => {
    requireOrder(id);
    return shown(context, await context.writableApi.cancelOrder(id));
  },
};

export const ordersList: Command = {
  name: 'orders list',
  summary: 'list orders, newest first',
  options: {
    status: { type: 'string', value: 'status', help: 'only orders in this status' },
    reference: { type: 'string', value: 'text', help: 'only the order with this reference of yours' },
    limit: { type: 'string', value: 'n', help: 'maximum number to show, 1 to 100 (default: 25)' },
    cursor: { type: 'string', value: 'cursor', help: 'the cursor of the previous page' },
  },
  examples: [
    { command: 'esim orders list --status failed', says: 'failed orders' },
    { command: 'esim orders list --reference booking-4711 --json', says: 'the order of a booking' },
  ],
  run: async (context, options) => {
    const page = await context.api.orders({
      status: options.text('status'),
      reference: options.text('reference'),
      limit: options.text('limit'),
      cursor: options.text('cursor'),
    });
    for (const order of page.data) context.output.data(order);
    context.output.table(
      page.data.map((order) => [
        order.id,
        order.status,
        boughtText(order),
        moneyText(order.total),
        order.created_at,
      ]),
    );
    context.output.noteNextPage(page);
    return EXIT.ok;
  },
};
