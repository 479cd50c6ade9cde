import type { Command } from '../command.js';
import { EXIT, usageError } from '../exit-codes.js';
import { SCENES } from '../sandbox-play.js';
import { waitUntilEnded } from '../wait-until-ended.js';
import { wholeNumber } from './values.js';

const TYPES = Object.keys(SCENES);

export const trigger: Command = {
  name: 'trigger',
  summary: 'make an event happen in the Sandbox',
  arguments: '<event>',
  details: `Plays what leads to the event: an order, an activation, usage, a top-up. It is a real event of the Sandbox: it is in
the feed, and every registered Sandbox endpoint gets it. Events: ${TYPES.join(', ')}.`,
  options: {
    esim: { type: 'string', value: 'id', help: 'use this eSIM of the Sandbox and order none' },
    percent: { type: 'string', value: 'n', help: 'for esim.usage.threshold: how much data is used (50)' },
    timeout: { type: 'string', value: 'seconds', help: 'how long to wait for an order or top-up (60)' },
  },
  examples: [
    { command: 'esim trigger order.issued', says: 'orders an eSIM' },
    { command: 'esim trigger esim.usage.threshold --percent 80', says: 'orders, activates and uses 80 %' },
  ],
  run: async (context, options, [type = '']) => {
    const scene = SCENES[type];
    if (scene === undefined)
      throw usageError(
        type === '' ? 'the event is missing' : `there is no event "${type}"`,
        `One of: ${TYPES.join(', ')}.`,
      );
    const { output } = context;
    const api = context.sandboxApi;
    const waiting = { output, signal: context.signal, withinSeconds: wholeNumber(options, 'timeout', 60) };
    const subject = await scene({
      api,
      esimId: options.text('esim') ?? null,
      percent: wholeNumber(options, 'percent', 50),
      waitForOrder: (id) => waitUntilEnded(() => api.order(id), waiting),
      waitForTopup: (id) => waitUntilEnded(() => api.topup(id), waiting),
      tell: (step) => output.note(step),
    });
    output.line(`${output.good(type)}  about ${subject}`);
    output.data({ event_type: type, subject });
    return EXIT.ok;
  },
};
