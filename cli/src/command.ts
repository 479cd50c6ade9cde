import type { ParseArgsConfig } from 'node:util';
import type { Context } from './context.js';
import type { ExitCode } from './exit-codes.js';

export interface OptionSpec {
  readonly type: 'string' | 'boolean';
  readonly short?: string;
  /** Placeholder for the value in help: `--quantity <n>`. */
  readonly value?: string;
  readonly help: string;
}

export interface Example {
  readonly command: string;
  readonly says: string;
}

/** Options of one call, by name without dashes. */
export class Options {
  constructor(private readonly values: Readonly<Record<string, string | boolean | undefined>>) {}

  text(name: string): string | undefined {
    const value = this.values[name];
    return typeof value === 'string' ? value : undefined;
  }

  flag(name: string): boolean {
    return this.values[name] === true;
  }
}

/** A command. Help, completion and parsing are all derived from it. */
export interface Command {
  /** The name as typed: `orders place`. */
  readonly name: string;
  readonly summary: string;
  /** Positional arguments as help shows them: `<event>`, or `[url]` if an option can replace it. */
  readonly arguments?: string;
  readonly details?: string;
  readonly options?: Readonly<Record<string, OptionSpec>>;
  readonly examples: readonly Example[];
  run(context: Context, options: Options, positionals: readonly string[]): Promise<ExitCode>;
}

export const GLOBAL_OPTIONS: Readonly<Record<string, OptionSpec>> = {
  json: { type: 'boolean', help: 'print JSON: one value, or one line per item' },
  live: {
    type: 'boolean',
    help: 'use the Live key; required for every write to Live',
  },
  'base-url': {
    type: 'string',
    value: 'url',
    help: 'address of the API (default: ESIM_BASE_URL, then the URL used at login)',
  },
  help: { type: 'boolean', short: 'h', help: 'show this help' },
};

/** Converts a command's options to the format of `util.parseArgs`. */
export function parseOptionsOf(command: Command): NonNullable<ParseArgsConfig['options']> {
  return Object.fromEntries(
    Object.entries({ ...GLOBAL_OPTIONS, ...command.options }).map(([name, { type, short }]) => [
      name,
      short === undefined ? { type } : { type, short },
    ]),
  );
}
