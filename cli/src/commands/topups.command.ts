import type { Command } from '../command.js';
import type { Context } from '../context.js';
import { EXIT, type ExitCode, usageError } from '../exit-codes.js';
import type { Topup } from '../partner-api.js';
import { Purchase, TOPUP } from '../purchase.js';
import { bytesText, counted, moneyText } from '../terminal/values.js';
import { showPackages } from './catalog.command.js';
import { chosenDays, oneOf, wholeNumber } from './values.js';

/** @param mustBeCompleted makes a top-up that was not applied a failure */
function shown({ output }: Context, topup: Topup, mustBeCompleted = false): ExitCode {
  const { id, status, package_id, esim_id, price, reference, failure } = topup;
  const paint = status === 'completed' ? output.good.bind(output) : output.bold.bind(output);
  const data = topup.data_added_bytes === null ? [] : [bytesText(topup.data_added_bytes)];
  const days = topup.validity_added_days > 0 ? [counted(topup.validity_added_days, 'day')] : [];
  output.line(`${output.bold(id)}  ${paint(status)}  ${package_id}  ${moneyText(price)}`);
  output.line(`  for ${esim_id}: ${[...data, ...days].join(', ')}`);
  if (reference) output.line(`  reference ${reference}`);
  if (failure) output.line(`  ${output.bad(failure.code)}: ${failure.reason}`);
  output.data(topup);
  return mustBeCompleted && status !== 'completed' ? EXIT.failed : EXIT.ok;
}

export const topupsPlace: Command = {
  name: 'topups place',
  summary: 'buy data or days for an eSIM, and wait for the outcome with --wait',
  arguments: '[esim] [package]',
  details: `Each top-up has one idempotency key. The command prints the key to stderr before it sends the top-up. If the command is
interrupted, repeat it with --idempotency-key: you get the same top-up and never pay twice. With --json, an error has
idempotency_key and topup_id while the outcome is unknown.`,
  options: {
    esim: {
      type: 'string',
      short: 'e',
      value: 'id',
      help: 'the eSIM id, instead of the first argument (see esim esims list)',
    },
    package: {
      type: 'string',
      short: 'p',
      value: 'id',
      help: 'the package id, instead of the second argument (see esim topups packages)',
    },
    days: { type: 'string', short: 'd', value: 'n', help: 'number of days, for a package with plan.days' },
    reference: { type: 'string', value: 'text', help: 'your own id for the top-up' },
    wait: { type: 'boolean', short: 'w', help: 'wait for the outcome of the top-up' },
    timeout: { type: 'string', value: 'seconds', help: 'how long --wait waits (default: 60)' },
    'idempotency-key': { type: 'string', value: 'key', help: 'the key of an earlier attempt' },
  },
  examples: [
    {
      command: 'esim topups place esim_01M7SJ8EH4V8DA1TCQEKT9GHZ7 pkg_fr_topup_1gb_7d --wait',
      says: 'buy more data in the Sandbox',
    },
    {
      command: 'esim topups place <esim> <package> --live',
      says: 'buy with real money; esim topups packages <esim> --live lists packages',
    },
  ],
  run: async (context, options, args) => {
    // With --esim, a single argument is the package.
    const [first, second] =
      options.text('esim') !== undefined && args.length === 1 ? [undefined, ...args] : args;
    const esimId = oneOf(options, 'esim', first);
    const packageId = oneOf(options, 'package', second);
    if (esimId === undefined)
      throw usageError('the eSIM is missing', 'Pass its id. `esim esims list` lists your eSIMs.');
    if (packageId === undefined)
      throw usageError(
        'the package is missing',
        `Pass its id. \`esim topups packages ${esimId}\` lists the packages that fit this eSIM.`,
      );
    const withinSeconds = wholeNumber(options, 'timeout', 60);
    const purchase = new Purchase(context, context.writableApi, TOPUP, options.text('idempotency-key'));
    const placed = await purchase.place({
      esim_id: esimId,
      package_id: packageId,
      ...chosenDays(options),
      reference: options.text('reference') ?? null,
    });
    if (!options.flag('wait')) return shown(context, placed);
    return shown(context, await purchase.end(placed, withinSeconds), true);
  },
};

export const topupsGet: Command = {
  name: 'topups get',
  summary: 'show a top-up',
  arguments: '<top-up>',
  examples: [{ command: 'esim topups get top_01M7SJ8EH4V8DA1TCQEKT9GHZ7', says: 'show its status' }],
  run: async (context, _options, [id]) => {
    if (id === undefined) throw usageError('the top-up is missing', 'Pass its id: `esim topups get top_…`.');
    return shown(context, await context.api.topup(id));
  },
};

export const topupsPackages: Command = {
  name: 'topups packages',
  summary: 'list the top-up packages that fit an eSIM now, cheapest first',
  arguments: '<esim>',
  examples: [
    {
      command: 'esim topups packages esim_01M7SJ8EH4V8DA1TCQEKT9GHZ7',
      says: 'list the packages that you can buy for it',
    },
  ],
  run: async (context, _options, [id]) => {
    if (id === undefined)
      throw usageError('the eSIM is missing', 'Pass its id. `esim esims list` lists your eSIMs.');
    return showPackages(context, await context.api.allTopupPackages(id));
  },
};
