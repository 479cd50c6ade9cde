import { parseArgs } from 'node:util';
import { type Command, Options, parseOptionsOf } from './command.js';
import { COMMANDS } from './commands/index.js';
import { Context } from './context.js';
import type { Environment } from './credentials/paths.js';
import { EXIT, type ExitCode, usageError } from './exit-codes.js';
import { explain } from './explain.js';
import { exitCodes, helpOf, helpOfGroup, overview, type Printed, usageOf } from './help.js';
import { Output, type Streams } from './terminal/output.js';
import { whenReaderIsGone } from './terminal/reader-gone.js';
import { counted } from './terminal/values.js';
import { VERSION } from './version.js';

/**
 * Runs one command line. Never throws: it prints errors and returns an exit code. If the reader of stdout exits, the
 * command stops silently, as with Ctrl-C, because the reader has all it wanted.
 */
export async function run(
  args: readonly string[],
  { environment, ...streams }: Streams & { readonly environment: Environment },
): Promise<ExitCode> {
  const output = new Output(streams, args.includes('--json'));
  const interruption = new AbortController();
  const interrupt = (): void => interruption.abort();
  let readerIsGone = false;
  whenReaderIsGone(streams, () => {
    readerIsGone = true;
    interrupt();
  });
  process.once('SIGINT', interrupt).once('SIGTERM', interrupt);
  try {
    // `--json` may also precede the command, because it only affects `output`.
    const rest = args.filter((word) => word !== '--json');
    return await dispatch(rest, environment, output, interruption.signal);
  } catch (error) {
    // The reader's exit caused this. Other errors, such as a possible purchase, still go to stderr.
    if (readerIsGone && (error as Error).name === 'AbortError') return EXIT.ok;
    return explain(error, output);
  } finally {
    process.off('SIGINT', interrupt).off('SIGTERM', interrupt);
  }
}

async function dispatch(
  args: readonly string[],
  environment: Environment,
  output: Output,
  signal: AbortSignal,
): Promise<ExitCode> {
  const [first] = args;
  if (first === '--version') return print(output, { text: `${VERSION}\n`, data: { version: VERSION } });
  if (first === undefined || first === '--help' || first === '-h') {
    print(output, overview(COMMANDS));
    return first === undefined ? EXIT.usage : EXIT.ok;
  }
  if (first === 'help') return help(args.slice(1), output);
  const command = commandOf(args);
  const { values, positionals } = parse(command, args.slice(command.name.split(' ').length));
  const options = new Options(values);
  if (options.flag('help')) return print(output, helpOf(command));
  const context = new Context({
    environment,
    output,
    signal,
    live: options.flag('live'),
    baseUrl: options.text('base-url'),
  });
  return command.run(context, options, positionals);
}

/**
 * Finds the longest command name that the line starts with: `orders place` before `orders`.
 * @throws CliError for an unknown command
 */
function commandOf(args: readonly string[]): Command {
  const line = args.join(' ');
  const fits = COMMANDS.filter(({ name }) => line === name || line.startsWith(`${name} `));
  const longest = fits.toSorted((a, b) => b.name.length - a.name.length)[0];
  if (longest) return longest;
  const near = COMMANDS.filter(({ name }) => name.startsWith(`${args[0]} `)).map(({ name }) => name);
  throw usageError(
    `there is no command "${args.slice(0, 2).join(' ')}"`,
    near.length > 0 ? `Did you mean ${near.join(', ')}?` : undefined,
  );
}

function parse(command: Command, args: readonly string[]): ReturnType<typeof parseCommandLine> {
  try {
    return parseCommandLine(command, args);
  } catch (error) {
    throw usageError(
      (error as Error).message.replaceAll('\n', ' '),
      `Usage: ${usageOf(command)}. \`esim help ${command.name}\` shows the options.`,
    );
  }
}

function parseCommandLine(
  command: Command,
  args: readonly string[],
): { values: Record<string, string | boolean | undefined>; positionals: string[] } {
  const parsed = parseArgs({ args: [...args], options: parseOptionsOf(command), allowPositionals: true });
  const most = command.arguments?.split(' ').length ?? 0;
  if (parsed.positionals.length > most)
    throw new Error(
      `"${parsed.positionals.slice(most).join(' ')}" is unexpected: ${command.name} takes ${counted(most, 'argument')}`,
    );
  return {
    values: parsed.values as Record<string, string | boolean | undefined>,
    positionals: parsed.positionals,
  };
}

function help(words: readonly string[], output: Output): ExitCode {
  if (words.length === 0) return print(output, overview(COMMANDS));
  if (words[0] === 'exit-codes') return print(output, exitCodes());
  const group = COMMANDS.filter(({ name }) => name.startsWith(`${words.join(' ')} `));
  const exact = COMMANDS.find(({ name }) => name === words.join(' '));
  if (exact === undefined && group.length > 0) return print(output, helpOfGroup(group));
  return print(output, helpOf(exact ?? commandOf(words)));
}

function print(output: Output, { text, data }: Printed): ExitCode {
  if (!output.json) output.raw(text);
  output.data(data);
  return EXIT.ok;
}
