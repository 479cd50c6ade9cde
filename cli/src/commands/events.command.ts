import type { Command } from '../command.js';
import { EXIT, usageError } from '../exit-codes.js';
import { LocalServer, localUrl } from '../listen/local-delivery.js';
import { localSigningSecret } from '../listen/signing-secret.js';
import { wholeNumber } from './orders.command.js';

export const eventsList: Command = {
  name: 'events list',
  summary: 'list events, oldest first',
  options: {
    type: { type: 'string', value: 'type', help: 'only this type' },
    after: { type: 'string', value: 'cursor', help: 'a cursor, or the id of an event' },
    subject: { type: 'string', value: 'id', help: 'only events about this order, eSIM or top-up' },
    limit: { type: 'string', value: 'n', help: 'how many, 1 to 100 (25)' },
  },
  examples: [
    { command: 'esim events list --type order.failed', says: 'what failed' },
    { command: 'esim events list --json | tail -1', says: 'the last one of the first page as JSON' },
  ],
  run: async (context, options) => {
    const page = await context.api.events(
      {
        type: options.text('type'),
        after: options.text('after'),
        subject: options.text('subject'),
      },
      wholeNumber(options, 'limit', 25),
    );
    for (const event of page.data) context.output.data(event);
    context.output.table(
      page.data.map((event) => [event.created_at, event.type, event.id, JSON.stringify(event.data)]),
    );
    context.output.note(`${page.hasMore ? 'more' : 'from here on'}: --after ${page.nextCursor}`);
    return EXIT.ok;
  },
};

export const eventsResend: Command = {
  name: 'events resend',
  summary: 'send a stored event to a server on this machine again',
  arguments: '<event>',
  details: `Reads the event from the API and POSTs it once, signed with this machine's secret. To have the service itself send a
delivery again to a registered endpoint, use the portal: the partner API has no call for it.`,
  options: {
    'forward-to': {
      type: 'string',
      short: 'f',
      value: 'url',
      help: 'where it goes: localhost:4000/webhooks',
    },
  },
  examples: [
    {
      command: 'esim events resend evt_01M7SJ8ETWZ2JSCW33NHESEZBW -f localhost:4000/webhooks',
      says: 'once more',
    },
  ],
  run: async (context, options, [id]) => {
    if (id === undefined) throw usageError('which event?');
    const target = options.text('forward-to');
    if (target === undefined) throw usageError('--forward-to is missing');
    const server = new LocalServer(localUrl(target), localSigningSecret(context.environment).secret, 60_000);
    try {
      const event = await context.api.event(id);
      const { delivered, outcome, latencyMs } = await server.deliver(event);
      const { output } = context;
      output.line(
        `${event.type}  ${event.id}  ${delivered ? output.good(outcome) : output.bad(outcome)}  ${latencyMs} ms`,
      );
      output.data({ event_id: event.id, event_type: event.type, delivered, outcome, latency_ms: latencyMs });
      return delivered ? EXIT.ok : EXIT.failed;
    } finally {
      server.close();
    }
  },
};
