/** Exit codes for scripts. `esim help exit-codes` prints them. */
export const EXIT = {
  ok: 0,
  /** The command ran with a negative result: an order failed, a signature is wrong, or doctor found a fault. */
  failed: 1,
  usage: 2,
  /** There is no key, or the service rejects it. */
  unauthorized: 3,
  /** The service refused the call (4xx). */
  refused: 4,
  /** The service could not be reached, or returned 5xx. */
  unavailable: 5,
  /** A command would have written with a Live key, but without `--live`. */
  liveRefused: 6,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

export const EXIT_CODE_MEANINGS: readonly (readonly [ExitCode, string])[] = [
  [EXIT.ok, 'success'],
  [EXIT.failed, 'failure: an order failed, a signature is wrong, or doctor found a problem'],
  [EXIT.usage, 'invalid command, option or argument'],
  [EXIT.unauthorized, 'no API key, or the service rejected it'],
  [EXIT.refused, 'the service rejected the call (4xx)'],
  [EXIT.unavailable, 'the service could not be reached, or returned 5xx'],
  [EXIT.liveRefused, 'the command would write to Live without --live'],
];

/** Ends the program with a message for people and an exit code for scripts. */
export class CliError extends Error {
  constructor(
    readonly exitCode: ExitCode,
    message: string,
    /** The next step, printed on a separate line. */
    readonly hint?: string,
  ) {
    super(message);
    this.name = 'CliError';
  }
}

/** An error in the middle of a purchase, with the data needed to find the purchase again. */
export class UnfinishedPurchase extends Error {
  constructor(
    /** Why the command ended. */
    override readonly cause: unknown,
    /** For people: the command to continue with. */
    readonly advice: string,
    /** For programs: the idempotency key, and the order's id once it is known. */
    readonly facts: Readonly<Record<string, string>>,
  ) {
    super(advice);
    this.name = 'UnfinishedPurchase';
  }
}

/** @param hint the next step, e.g. the command that shows help */
export function usageError(message: string, hint = '`esim help` lists all commands.'): CliError {
  return new CliError(EXIT.usage, message, hint);
}
