import type { Command } from '../command.js';
import type { Context } from '../context.js';
import { EXIT, type ExitCode, usageError } from '../exit-codes.js';
import type { Order } from '../partner-api.js';
import { ORDER, Purchase } from '../purchase.js';
import { moneyText } from '../terminal/values.js';
import { oneOf, wholeNumber } from './values.js';

function show({ output, live }: Context, order: Order): void {
  const paint = order.status === 'issued' ? output.good.bind(output) : output.bold.bind(output);
  output.line(
    `${output.bold(order.id)}  ${paint(order.status)}  ${order.package_id} x ${order.quantity}  ${moneyText(order.total)}`,
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
  summary: 'place an order, and with --wait see how it ends',
  arguments: '[package]',
  details: `One idempotency key stands for one intent. The command prints it to stderr before the call leaves, and the order
before it waits: whatever ends the command, with --idempotency-key the same order is placed again without being bought
twice. With --json an error has idempotency_key and order_id while the end is not known.`,
  options: {
    package: {
      type: 'string',
      short: 'p',
      value: 'id',
      help: 'the package, instead of the argument (esim catalog)',
    },
    quantity: { type: 'string', short: 'q', value: 'n', help: '1 (default) to 20' },
    reference: { type: 'string', value: 'text', help: 'your own id of the order' },
    wait: { type: 'boolean', short: 'w', help: 'wait until the order has ended' },
    timeout: { type: 'string', value: 'seconds', help: 'how long --wait waits (60)' },
    'idempotency-key': { type: 'string', value: 'key', help: 'that of an earlier try' },
  },
  examples: [
    { command: 'esim orders place pkg_fr_1gb_7d --wait', says: 'one eSIM of the Sandbox' },
    {
      command: 'esim orders place <package> -q 3 --reference booking-4711 --live',
      says: 'three, for real money; esim catalog --live lists packages',
    },
  ],
  run: async (context, options, [argument]) => {
    const packageId = oneOf(options, 'package', argument);
    if (packageId === undefined)
      throw usageError(
        'the package is missing',
        `Give its id: \`esim orders place ${context.live ? '<package> --live' : 'pkg_fr_1gb_7d'}\`. \`esim catalog${context.live ? ' --live' : ''}\` lists packages.`,
      );
    const withinSeconds = wholeNumber(options, 'timeout', 60);
    const api = context.writableApi;
    const order = {
      package_id: packageId,
      quantity: wholeNumber(options, 'quantity', 1),
      reference: options.text('reference') ?? null,
    };
    const purchase = new Purchase(context, api, ORDER, options.text('idempotency-key'));
    const placed = await purchase.place(order);
    if (!options.flag('wait')) return shown(context, placed);
    return shown(context, await purchase.end(placed, withinSeconds), true);
  },
};

/** With `mustBeIssued` an order of which nothing, or not all, was issued is a failure. */
function shown(context: Context, order: Order, mustBeIssued = false): ExitCode {
  show(context, order);
  return mustBeIssued && order.status !== 'issued' ? EXIT.failed : EXIT.ok;
}

export const ordersGet: Command = {
  name: 'orders get',
  summary: 'show an order',
  arguments: '<order>',
  examples: [{ command: 'esim orders get ord_01M7SJ8EH4V8DA1TCQEKT9GHZ7', says: 'its status and eSIMs' }],
  run: async (context, _options, [id]) => {
    if (id === undefined)
      throw usageError('the order is missing', 'Give its id. `esim orders list` lists orders.');
    return shown(context, await context.api.order(id));
  },
};

export const ordersList: Command = {
  name: 'orders list',
  summary: 'list orders, newest first',
  options: {
    status: { type: 'string', value: 'status', help: 'only orders in this status' },
    reference: { type: 'string', value: 'text', help: 'only the order with this id of yours' },
    limit: { type: 'string', value: 'n', help: 'how many, 1 to 100 (25)' },
    cursor: { type: 'string', value: 'cursor', help: 'go on behind a page' },
  },
  examples: [
    { command: 'esim orders list --status failed', says: 'what failed' },
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
        `${order.package_id} x ${order.quantity}`,
        moneyText(order.total),
        order.created_at,
      ]),
    );
    context.output.noteNextPage(page);
    return EXIT.ok;
  },
};
