import type { Command } from '../command.js';
import type { Context } from '../context.js';
import { EXIT, type ExitCode, usageError } from '../exit-codes.js';
import type { RefundRequest } from '../partner-api.js';
import { moneyText } from '../terminal/values.js';
import { oneOf } from './values.js';

const REASONS = ['not_working', 'wrong_device', 'duplicate', 'other'] as const;

function shown({ output }: Context, request: RefundRequest): ExitCode {
  const { id, status, esim_id, reason, details, amount, note } = request;
  output.line(`${output.bold(id)}  ${status}${amount === null ? '' : `  ${moneyText(amount)}`}`);
  output.line(`  for ${esim_id}: ${reason}`);
  if (details) output.line(`  details: ${details}`);
  if (note) output.line(`  our answer: ${note}`);
  output.data(request);
  return EXIT.ok;
}

function idOf(id: string | undefined): string {
  if (id === undefined)
    throw usageError(
      'the refund request is missing',
      'Pass its id. `esim refunds list` lists your refund requests.',
    );
  return id;
}

export const refundsCreate: Command = {
  name: 'refunds create',
  summary: 'request a refund of an eSIM, which a person decides',
  arguments: '[esim]',
  details: `An eSIM has at most one pending request. To refund an unused eSIM at once, cancel its order.`,
  options: {
    esim: { type: 'string', short: 'e', value: 'id', help: 'the eSIM id, instead of the argument' },
    reason: {
      type: 'string',
      short: 'r',
      value: 'reason',
      help: `one of ${REASONS.join(', ')} (default: other)`,
    },
    details: { type: 'string', value: 'text', help: 'anything that helps to decide the request' },
  },
  examples: [
    {
      command: 'esim refunds create esim_01M7SJ8EH4V8DA1TCQEKT9GHZ7 --reason not_working',
      says: 'request a refund in the Sandbox',
    },
  ],
  run: async (context, options, [argument]) => {
    const esimId = oneOf(options, 'esim', argument);
    if (esimId === undefined)
      throw usageError('the eSIM is missing', 'Pass its id. `esim esims list` lists your eSIMs.');
    const given = options.text('reason') ?? 'other';
    const reason = REASONS.find((each) => each === given);
    if (reason === undefined)
      throw usageError(`"${given}" is not a reason`, `Pass one of ${REASONS.join(', ')}.`);
    const details = options.text('details') ?? null;
    return shown(context, await context.writableApi.requestRefund({ esim_id: esimId, reason, details }));
  },
};

export const refundsList: Command = {
  name: 'refunds list',
  summary: 'list refund requests, newest first',
  options: {
    status: { type: 'string', value: 'status', help: 'only requests in this status' },
    esim: { type: 'string', short: 'e', value: 'id', help: 'only requests for this eSIM' },
    limit: { type: 'string', value: 'n', help: 'maximum number to show, 1 to 100 (default: 25)' },
    cursor: { type: 'string', value: 'cursor', help: 'the cursor of the previous page' },
  },
  examples: [{ command: 'esim refunds list --status pending', says: 'requests that are not decided yet' }],
  run: async (context, options) => {
    const page = await context.api.refunds({
      status: options.text('status'),
      esim_id: options.text('esim'),
      limit: options.text('limit'),
      cursor: options.text('cursor'),
    });
    for (const request of page.data) context.output.data(request);
    context.output.table(
      page.data.map(({ id, status, esim_id, reason, amount, created_at }) => [
        id,
        status,
        esim_id,
        reason,
        amount === null ? '' : moneyText(amount),
        created_at,
      ]),
    );
    context.output.noteNextPage(page);
    return EXIT.ok;
  },
};

export const refundsGet: Command = {
  name: 'refunds get',
  summary: 'show a refund request',
  arguments: '<refund>',
  examples: [{ command: 'esim refunds get rfr_01M7SJ8EH4V8DA1TCQEKT9GHZ7', says: 'show its status' }],
  run: async (context, _options, [id]) => shown(context, await context.api.refund(idOf(id))),
};

export const refundsCancel: Command = {
  name: 'refunds cancel',
  summary: 'withdraw a pending refund request',
  arguments: '<refund>',
  examples: [{ command: 'esim refunds cancel rfr_01M7SJ8EH4V8DA1TCQEKT9GHZ7', says: 'withdraw it' }],
  run: async (context, _options, [id]) => shown(context, await context.writableApi.cancelRefund(idOf(id))),
};
