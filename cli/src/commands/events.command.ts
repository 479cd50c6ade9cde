import type { Command } from '../command.js';
import type { Context } from '../context.js';
import { EXIT, usageError } from '../exit-codes.js';
import { LocalServer, localUrl } from '../listen/local-delivery.js';
import { localSigningSecret } from '../listen/signing-secret.js';
import type { ServiceEvent } from '../partner-api.js';
import { oneOf, wholeNumber } from './values.js';

export const eventsList: Command = {
  name: 'events list',
  summary: 'list events, oldest first, or newest first with --newest',
  options: {
    type: { type: 'string', value: 'type', help: 'only events of this type' },
    after: { type: 'string', value: 'cursor', help: 'only events after this cursor or event id' },
    subject: { type: 'string', value: 'id', help: 'only events about this order, eSIM or top-up' },
    newest: {
      type: 'boolean',
      short: 'n',
      help: 'newest first; reads the whole feed, one call per 100 events',
    },
    limit: { type: 'string', value: 'n', help: 'maximum number to show, 1 to 100 (default: 25)' },
  },
  examples: [
    { command: 'esim events list --newest --limit 5', says: 'the latest events' },
    { command: 'esim events list --type order.failed', says: 'failed orders' },
  ],
  run: async (context, options) => {
    const limit = wholeNumber(options, 'limit', 25);
    const filters = {
      type: options.text('type'),
      after: options.text('after'),
      subject: options.text('subject'),
    };
    if (options.flag('newest')) {
      show(context, await newestEvents(context, filters, limit));
      return EXIT.ok;
    }
    const page = await context.api.events(filters, limit);
    show(context, page.data);
    context.output.note(`${page.hasMore ? 'next page' : 'new events'}: --after ${page.nextCursor}`);
    return EXIT.ok;
  },
};

function show({ output }: Context, events: readonly ServiceEvent[]): void {
  for (const event of events) output.data(event);
  output.table(events.map((event) => [event.created_at, event.type, event.id, JSON.stringify(event.data)]));
}

/** Reads the feed to its end, because the API cannot start from there. */
async function newestEvents(
  { api, output }: Context,
  { after: begin, ...filters }: Readonly<Record<string, string | undefined>>,
  limit: number,
): Promise<ServiceEvent[]> {
  const progress = output.progress();
  try {
    let newest: readonly ServiceEvent[] = [];
    for (let [after, read] = [begin, 0]; ;) {
      const page = await api.events({ ...filters, after }, 100);
      newest = [...newest, ...page.data].slice(-limit);
      read += page.data.length;
      if (!page.hasMore) return newest.toReversed();
      progress.update(`${read} events read`);
      after = page.nextCursor;
    }
  } finally {
    progress.done();
  }
}

export const eventsResend: Command = {
  name: 'events resend',
  summary: 'send a past event to a server on this machine again',
  arguments: '<event> [url]',
  details: `Reads the event from the API and POSTs it once, signed with this machine's secret. To resend a delivery to a
registered endpoint, use the portal. The partner API has no call for that.`,
  options: {
    'forward-to': {
      type: 'string',
      short: 'f',
      value: 'url',
      help: 'the URL of your server, instead of the second argument',
    },
  },
  examples: [
    {
      command: 'esim events resend evt_01M7SJ8ETWZ2JSCW33NHESEZBW localhost:4000/webhooks',
      says: 'send the event again',
    },
  ],
  run: async (context, options, [id, argument]) => {
    if (id === undefined)
      throw usageError(
        'the event is missing',
        'Pass its id. `esim events list --newest` lists recent events.',
      );
    const target = oneOf(options, 'forward-to', argument);
    if (target === undefined)
      throw usageError(
        'the URL of your server is missing',
        `Add it: \`esim events resend ${id} localhost:4000/webhooks\`.`,
      );
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
