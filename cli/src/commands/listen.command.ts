import type { Command, Options } from '../command.js';
import type { Context } from '../context.js';
import { EXIT, type ExitCode, usageError } from '../exit-codes.js';
import { CursorFile, type FeedPosition } from '../listen/cursor-file.js';
import { FeedReader } from '../listen/feed-reader.js';
import { Listener, type OnFailure } from '../listen/listener.js';
import { lockListener } from '../listen/listener-lock.js';
import { type DeliveryResult, LocalServer, localUrl } from '../listen/local-delivery.js';
import { localSigningSecret, signingSecretFile } from '../listen/signing-secret.js';
import { parseSince, startingPoint } from '../listen/starting-point.js';
import type { ServiceEvent } from '../partner-api.js';
import { clockText } from '../terminal/values.js';
import { oneOf, wholeNumber } from './values.js';

export const listen: Command = {
  name: 'listen',
  summary: 'forward events to a server on this machine, signed like webhooks',
  arguments: '[url]',
  details: `Reads the event feed and POSTs each event to the URL, in the feed's order, with the headers of a webhook. You need no
public URL and no registered endpoint. Progress is saved on disk after each 2xx from your server. Sleep, a lost network,
Ctrl-C or a crash loses nothing. An event arrives twice only if the program dies between the 2xx and the save, so
process each event id once, as with webhooks.`,
  options: {
    'forward-to': {
      type: 'string',
      short: 'f',
      value: 'url',
      help: 'the URL of your server, instead of the argument',
    },
    since: {
      type: 'string',
      value: 'when',
      help: 'where to start: now, beginning, 2h or evt_… (default: where it stopped, or now the first time)',
    },
    types: { type: 'string', value: 'a,b', help: 'only these event types (order.issued,order.failed)' },
    'on-failure': {
      type: 'string',
      value: 'what',
      help: 'when your server does not return 2xx: retry (default), skip or stop',
    },
    timeout: {
      type: 'string',
      value: 'seconds',
      help: 'how long to wait for your server (default: 60, like the service)',
    },
    'print-secret': { type: 'boolean', help: "print this machine's signing secret and exit" },
  },
  examples: [
    { command: 'esim listen --forward-to localhost:4000/webhooks', says: 'continue where it stopped' },
    { command: 'esim listen -f localhost:4000/webhooks --since 2h', says: 'send the last two hours again' },
    {
      command: 'export ESIM_WEBHOOK_SECRET=$(esim listen --print-secret)',
      says: 'the secret for your server to verify with',
    },
  ],
  run: async (context, options, [argument]) => {
    const { secret, made } = localSigningSecret(context.environment);
    if (options.flag('print-secret')) return printSecret(context, secret);
    const target = oneOf(options, 'forward-to', argument);
    if (target === undefined)
      throw usageError(
        'the URL of your server is missing',
        'Add it: `esim listen localhost:4000/webhooks`. `esim help listen` shows examples.',
      );
    const url = localUrl(target);
    const server = new LocalServer(url, secret, wholeNumber(options, 'timeout', 60) * 1_000);
    const api = context.api;
    const types = typesOf(options);
    const me = await api.me();
    // The service rejects an unknown type. A misspelled one would wait forever.
    for (const type of types ?? []) await api.events({ type }, 1);
    const cursor = new CursorFile(context.environment, {
      baseUrl: context.baseUrl,
      partnerId: me.partner_id,
      mode: me.mode,
      target: url,
    });
    const unlock = await lockListener(cursor.path);
    try {
      if (made)
        context.output.note(
          `created a signing secret in ${signingSecretFile(context.environment)}; \`esim listen --print-secret\` shows it`,
        );
      return await forward(context, options, {
        cursor,
        server,
        url,
        types,
        startedAtMs: api.firstAnsweredAtMs,
      });
    } finally {
      unlock();
      server.close();
    }
  },
};

/** The parts of one run of the command. */
interface Session {
  readonly cursor: CursorFile;
  readonly server: LocalServer;
  readonly url: URL;
  /** Types of the forwarded events; null for all. */
  readonly types: ReadonlySet<string> | null;
  /** Start of the command by the service's clock. */
  readonly startedAtMs: number;
}

function printSecret({ output }: Context, secret: string): ExitCode {
  output.line(secret);
  output.data({ secret });
  return EXIT.ok;
}

async function forward(
  context: Context,
  options: Options,
  { cursor, server, url, types, startedAtMs }: Session,
): Promise<ExitCode> {
  const { output, signal } = context;
  const onFailure = onFailureOf(options);
  const feed = new FeedReader({
    api: context.patientApi,
    signal,
    onTrouble: (reason, pauseMs) =>
      output.warn(`${clockText()}  ${reason}; retrying in ${(pauseMs / 1_000).toFixed(1)} s`),
    onRecovered: () => output.note(`${clockText()}  reconnected`),
  });
  const tellOfRefusal = onceOnRefusal(context);
  const listener = new Listener({
    feed,
    server,
    cursor,
    types,
    onFailure,
    signal,
    onAttempt: (event, result, retryMs) => {
      report(context, event, result, retryMs);
      tellOfRefusal(result);
    },
  });
  try {
    const from = await beginAt(context, options, feed, { cursor, startedAtMs });
    output.data({ type: 'ready', forward_to: url.href, cursor_file: cursor.path });
    output.line(`${output.bold('ready')}  ${context.mode} events to ${url.href}`);
    await listener.run(from);
  } catch (error) {
    // Ctrl-C is the normal way to stop.
    if (!signal.aborted) throw error;
  }
  return EXIT.ok;
}

/** Status codes with which receivers reject a signature. They can have other causes. */
const REFUSALS: ReadonlySet<string> = new Set(['400', '401', '403']);

/** Prints the hint only at the first refusal of a run, because every attempt prints its own line. */
function onceOnRefusal({ output }: Context): (result: DeliveryResult) => void {
  let told = false;
  return ({ outcome }) => {
    if (told || !REFUSALS.has(outcome)) return;
    told = true;
    output.warn(
      'if your server rejected the signature, give it the secret that `esim listen --print-secret` prints; see `esim verify`',
    );
  };
}

async function beginAt(
  { output }: Context,
  options: Options,
  feed: FeedReader,
  { cursor, startedAtMs }: Pick<Session, 'cursor' | 'startedAtMs'>,
): Promise<FeedPosition> {
  const wanted = options.text('since');
  const kept = cursor.read();
  if (kept !== null && wanted === undefined) return kept;
  const progress = output.progress();
  const start = await startingPoint(feed, parseSince(wanted ?? 'now', startedAtMs), (count) =>
    progress.update(`skipping earlier events: ${count} so far`),
  ).finally(() => progress.done());
  // Save the position at once. Otherwise a crash before the first event would skip events that arrive from now on.
  cursor.write(start);
  return start;
}

function typesOf(options: Options): ReadonlySet<string> | null {
  const types = options.text('types');
  return types === undefined ? null : new Set(types.split(',').map((type) => type.trim()));
}

function onFailureOf(options: Options): OnFailure {
  const wanted = options.text('on-failure') ?? 'retry';
  if (wanted === 'retry' || wanted === 'skip' || wanted === 'stop') return wanted;
  throw usageError(`--on-failure cannot be "${wanted}"`, 'Use retry, skip or stop.');
}

function report(
  { output }: Context,
  event: ServiceEvent,
  { delivered, outcome, latencyMs }: DeliveryResult,
  retryMs: number | null,
): void {
  const shown = delivered ? output.good(outcome) : output.bad(outcome);
  const next =
    retryMs === null
      ? ''
      : `  retrying in ${retryMs / 1_000} s (the service waits 30 s, 60 s, 3 min, 5 min, 15 min)`;
  output.line(`${clockText()}  ${event.type.padEnd(21)}  ${event.id}  ${shown}  ${latencyMs} ms${next}`);
  output.data({
    type: 'attempt',
    event_id: event.id,
    event_type: event.type,
    delivered,
    outcome,
    latency_ms: latencyMs,
    retry_ms: retryMs,
  });
}
