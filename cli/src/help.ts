import { type Command, GLOBAL_OPTIONS, type OptionSpec } from './command.js';
import { EXIT_CODE_MEANINGS } from './exit-codes.js';

const INTRODUCTION = `esim: the partner eSIM API from a terminal.

Usage: esim <command> [options]`;

const OUTRO = `API key: run \`esim login\`, or set ESIM_API_KEY.
Base URL: --base-url, then ESIM_BASE_URL, then the URL used at login. A stored key is sent nowhere else.
To resend a webhook delivery, use the portal.
More: esim help <command> · esim help exit-codes`;

/** The same content as text and as data. */
export interface Printed {
  readonly text: string;
  readonly data: object;
}

/** Content of `esim help`. */
export function overview(commands: readonly Command[]): Printed {
  const rows = commands.map(({ name, summary }): [string, string] => [name, summary]);
  const text = `${INTRODUCTION}\n\nCommands:\n${columns([...rows, ['help', 'show help for esim or for a command']])}

Every command takes:\n${optionLines(GLOBAL_OPTIONS)}\n\n${OUTRO}\n`;
  return {
    text,
    data: {
      commands: commands.map(({ name, summary }) => ({ name, summary })),
      options: optionData(GLOBAL_OPTIONS),
    },
  };
}

/** For example `esim orders get <order> [options]`. */
export function usageOf({ name, arguments: positionals }: Command): string {
  return ['esim', name, positionals, '[options]'].filter(Boolean).join(' ');
}

/** Content of `esim help <command>`. */
export function helpOf(command: Command): Printed {
  const usage = usageOf(command);
  const own = command.options ? `\nOptions:\n${optionLines(command.options)}\n` : '';
  const examples = command.examples.map(({ command: line, says }) => `  # ${says}\n  ${line}`).join('\n');
  const { name, summary, details = null, arguments: positionals = null } = command;
  return {
    text: `${summary}\n\nUsage: ${usage}\n${details === null ? '' : `\n${details}\n`}${own}
Every command takes:\n${optionLines(GLOBAL_OPTIONS)}\n\nExamples:\n${examples}\n`,
    data: {
      name,
      summary,
      usage,
      arguments: positionals,
      details,
      options: optionData(command.options ?? {}),
      examples: command.examples,
    },
  };
}

/** Content of `esim help <group>`, such as `orders`. */
export function helpOfGroup(commands: readonly Command[]): Printed {
  const pages = commands.map(helpOf);
  return {
    text: pages.map(({ text }) => text).join('\n'),
    data: { commands: pages.map(({ data }) => data) },
  };
}

/** Content of `esim help exit-codes`. */
export function exitCodes(): Printed {
  return {
    text: `Exit codes:\n${columns(EXIT_CODE_MEANINGS.map(([code, meaning]) => [String(code), meaning]))}\n`,
    data: { exit_codes: EXIT_CODE_MEANINGS.map(([code, meaning]) => ({ code, meaning })) },
  };
}

function optionData(options: Readonly<Record<string, OptionSpec>>): object[] {
  return Object.entries(options).map(([name, { short = null, value = null, help }]) => ({
    name: `--${name}`,
    short: short === null ? null : `-${short}`,
    value,
    help,
  }));
}

function optionLines(options: Readonly<Record<string, OptionSpec>>): string {
  return columns(
    Object.entries(options).map(([name, { short, value, help }]) => [
      `${short ? `-${short}, ` : ''}--${name}${value ? ` <${value}>` : ''}`,
      help,
    ]),
  );
}

function columns(rows: readonly (readonly [string, string])[]): string {
  const width = Math.max(13, ...rows.map(([left]) => left.length));
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`).join('\n');
}
