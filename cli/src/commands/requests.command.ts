import type { Command } from '../command.js';
import type { Context } from '../context.js';
import { EXIT, usageError } from '../exit-codes.js';
import type { LoggedCall } from '../partner-api.js';
import { RequestsTail } from '../requests-tail.js';
import { clockText } from '../terminal/values.js';

export const requestsTail: Command = {
  name: 'requests tail',
  summary: 'follow the calls that your keys make, as the service logged them',
  details: `Prints each call of the key's partner and mode from now on, about a second after its answer, until Ctrl-C. What this
command itself asks is not in it. It asks every two seconds, a token each.`,
  options: {
    status: { type: 'string', value: '4xx', help: 'only this status, or this class of statuses' },
    method: { type: 'string', value: 'POST', help: 'only this method' },
    route: { type: 'string', value: '/v1/orders/:id', help: 'only this route, as a pattern' },
  },
  examples: [
    { command: 'esim requests tail --status 4xx', says: 'what the service refuses' },
    { command: 'esim requests tail --json | grep --line-buffered order', says: 'for a program' },
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
    output.note(`${context.mode} calls from now on; Ctrl-C ends it`);
    try {
      return await tail.run();
    } catch (error) {
      // Ctrl-C is how it ends.
      if (!signal.aborted) throw error;
      return EXIT.ok;
    }
  },
};

/** The API knows a status only; a class is looked for here. @throws CliError for what is neither */
function statusFilter(wanted: string | undefined): {
  exact: string | undefined;
  isWanted: (status: number) => boolean;
} {
  if (wanted === undefined) return { exact: undefined, isWanted: () => true };
  if (/^[1-5]\d\d$/.test(wanted)) return { exact: wanted, isWanted: () => true };
  if (!/^[1-5]xx$/.test(wanted))
    throw usageError(`--status cannot be "${wanted}"`, 'It is a status or a class of them: 404, 4xx.');
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
