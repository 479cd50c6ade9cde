import type { Command } from '../command.js';
import type { Context } from '../context.js';
import { EXIT, usageError } from '../exit-codes.js';
import type { LoggedCall } from '../partner-api.js';
import { RequestsTail } from '../requests-tail.js';
import { clockText } from '../terminal/values.js';

export const requestsTail: Command = {
  name: 'requests tail',
  summary: 'follow the API calls of your keys, as the service logged them',
  details: `Prints each new call of the key's partner and mode, about a second after its response, until you press Ctrl-C. It leaves
out its own calls. It polls every two seconds, and each poll counts towards the rate limit.`,
  options: {
    status: {
      type: 'string',
      value: '4xx',
      help: 'only this status or class of statuses, for example 404 or 4xx',
    },
    method: { type: 'string', value: 'POST', help: 'only calls with this method' },
    route: { type: 'string', value: '/v1/orders/:id', help: 'only calls of this route pattern' },
  },
  examples: [
    { command: 'esim requests tail --status 4xx', says: 'calls that the service rejected' },
    {
      command: 'esim requests tail --json | grep --line-buffered order',
      says: 'filter the calls with another program',
    },
  ],
  run: async (context, options) => {
    const { exact, isWanted } = statusFilter(options.text('status'));
    const { output, signal } = context;
    const tail = new RequestsTail({
      api: context.api,
      filters: { status: exact, method: options.text('method'), route: options.text('route') },
      signal,
      onCall: (call) => void (isWanted(call.status) && show(context, call)),
      onTrouble: (reason) => output.warn(`${clockText()}  ${reason}`),
    });
    output.note(`following ${context.mode} calls; press Ctrl-C to stop`);
    try {
      return await tail.run();
    } catch (error) {
      // Ctrl-C is the normal way to stop.
      if (!signal.aborted) throw error;
      return EXIT.ok;
    }
  },
};

/**
 * The API filters by single statuses only, so a class of statuses is filtered here.
 * @throws CliError for any other value
 */
function statusFilter(wanted: string | undefined): {
  exact: string | undefined;
  isWanted: (status: number) => boolean;
} {
  if (wanted === undefined) return { exact: undefined, isWanted: () => true };
  if (/^[1-5]\d\d$/.test(wanted)) return { exact: wanted, isWanted: () => true };
  if (!/^[1-5]xx$/.test(wanted))
    throw usageError(`--status cannot be "${wanted}"`, 'Use a status or a class of statuses: 404, 4xx.');
  return { exact: undefined, isWanted: (status) => String(status).startsWith(wanted.charAt(0)) };
}

function show({ output }: Context, call: LoggedCall): void {
  const { created_at, method, path, status, error_code, request_id, latency_ms } = call;
  const shown = status < 400 ? output.good(String(status)) : output.bad(String(status));
  const code = error_code === null ? '' : `  ${error_code}`;
  output.line(
    `${clockText(new Date(created_at))}  ${method} ${path}  ${shown}${code}  ${request_id}  ${Math.round(latency_ms)} ms`,
  );
  output.data(call);
}
