import type { ParseArgsConfig } from 'node:util';
import type { Context } from './context.js';
import type { ExitCode } from './exit-codes.js';

export interface OptionSpec {
  readonly type: 'string' | 'boolean';
  readonly short?: string;
  /** Placeholder of the value in help: `--quantity <n>`. */
  readonly value?: string;
  readonly help: string;
}

export interface Example {
  readonly command: string;
  readonly says: string;
}

/** The options of one call, by name without dashes. */
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

/** One command of the program; help, completion and parsing all come from it. */
export interface Command {
  /** As typed: `orders place`. */
  readonly name: string;
  readonly summary: string;
  /** Positional arguments as help shows them: `<event>`, `[url]` for one that an option may give instead. */
  readonly arguments?: string;
  readonly details?: string;
  readonly options?: Readonly<Record<string, OptionSpec>>;
  readonly examples: readonly Example[];
  run(context: Context, options: Options, positionals: readonly string[]): Promise<ExitCode>;
}

/** Options that every command takes. */
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

/** A command's options as `util.parseArgs` takes them. */
export function parseOptionsOf(command: Command): NonNullable<ParseArgsConfig['options']> {
  return Object.fromEntries(
    Object.entries({ ...GLOBAL_OPTIONS, ...command.options }).map(([name, { type, short }]) => [
      name,
      short === undefined ? { type } : { type, short },
    ]),
  );
}
