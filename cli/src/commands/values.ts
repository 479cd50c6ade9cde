import type { Options } from '../command.js';
import { usageError } from '../exit-codes.js';

/** @throws CliError when it is no whole number */
export function wholeNumber(options: Options, name: string, otherwise: number): number {
  const text = options.text(name);
  if (text === undefined) return otherwise;
  if (!/^\d{1,9}$/.test(text))
    throw usageError(`--${name} is not a whole number`, `For example --${name} ${otherwise}.`);
  return Number(text);
}

/** The value of an option or of an argument. @throws CliError when both are given, and differ */
export function oneOf(options: Options, name: string, argument: string | undefined): string | undefined {
  const option = options.text(name);
  if (option !== undefined && argument !== undefined && option !== argument)
    throw usageError(`"${argument}" and --${name} ${option} differ`, 'Pass only one of them.');
  return option ?? argument;
}
