import type { Options } from '../command.js';
import { usageError } from '../exit-codes.js';

/** @throws CliError when the value is not a whole number */
export function wholeNumber(options: Options, name: string, otherwise: number): number {
  const text = options.text(name);
  if (text === undefined) return otherwise;
  if (!/^\d{1,9}$/.test(text))
    throw usageError(`--${name} is not a whole number`, `For example --${name} ${otherwise}.`);
  return Number(text);
}

/** The number of days of an order or top-up. @throws CliError when it is not a whole number */
export function chosenDays(options: Options): { readonly days?: number } {
  return options.text('days') === undefined ? {} : { days: wholeNumber(options, 'days', 7) };
}

/**
 * Reads a value that may be an option or an argument.
 * @throws CliError when both are present and differ
 */
export function oneOf(options: Options, name: string, argument: string | undefined): string | undefined {
  const option = options.text(name);
  if (option !== undefined && argument !== undefined && option !== argument)
    throw usageError(`"${argument}" and --${name} ${option} differ`, 'Pass only one of them.');
  return option ?? argument;
}
