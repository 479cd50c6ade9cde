import type { Command } from '../command.js';
import { EXIT, usageError } from '../exit-codes.js';
import { NOT_TRIGGERED, SCENES } from '../sandbox-play.js';
import { waitUntilEnded } from '../wait-until-ended.js';
import { wholeNumber } from './values.js';

const SCENE_OF = new Map(Object.entries(SCENES));
const TYPES = [...SCENE_OF.keys()];

/** The message and the hint. */
function refusalOf(type: string): [string, string] {
  const reason = (NOT_TRIGGERED as Readonly<Record<string, string>>)[type];
  if (reason !== undefined) return [`${type} cannot be triggered`, reason];
  return [
    type === '' ? 'the event is missing' : `there is no event type "${type}"`,
    `Event types: ${TYPES.join(', ')}.`,
  ];
}

export const trigger: Command = {
  name: 'trigger',
  summary: 'make an event happen in the Sandbox',
  arguments: '<event>',
  details: `Performs the steps that lead to the event: an order, an activation, data usage or a top-up. The Sandbox then creates a
real event, adds it to the feed, and sends it to every registered Sandbox endpoint.

Events:
${TYPES.map((type) => `  ${type}`).join('\n')}`,
  options: {
    esim: { type: 'string', value: 'id', help: 'use this Sandbox eSIM instead of ordering one' },
    percent: {
      type: 'string',
      value: 'n',
      help: 'for esim.usage.threshold: percent of the data to use (default: 50)',
    },
    timeout: {
      type: 'string',
      value: 'seconds',
      help: 'how long to wait for an order or top-up (default: 60)',
    },
  },
  examples: [
    { command: 'esim trigger order.issued', says: 'order an eSIM' },
    {
      command: 'esim trigger esim.usage.threshold --percent 80',
      says: 'order and activate an eSIM, then use 80% of its data',
    },
  ],
  run: async (context, options, [type = '']) => {
    const scene = SCENE_OF.get(type);
    if (scene === undefined) throw usageError(...refusalOf(type));
    const { output } = context;
    const api = context.sandboxApi;
    const waiting = { output, signal: context.signal, withinSeconds: wholeNumber(options, 'timeout', 60) };
    const subject = await scene({
      api,
      esimId: options.text('esim') ?? null,
      percent: wholeNumber(options, 'percent', 50),
      waitForOrder: (id) => waitUntilEnded((wait) => api.order(id, wait), waiting),
      waitForTopup: (id) => waitUntilEnded((wait) => api.topup(id, wait), waiting),
      tell: (step) => output.note(step),
    });
    output.line(`${output.good(type)}  about ${subject}`);
    output.data({ event_type: type, subject });
    return EXIT.ok;
  },
};
