/** `warn` still counts as healthy. `not_checked` follows a fault that makes the check meaningless. */
export type Verdict = 'ok' | 'warn' | 'bad' | 'not_checked';

/** Result of one check of `esim doctor`. */
export interface Finding {
  readonly check: string;
  readonly status: Verdict;
  /** The observed state, and for a fault also its fix. */
  readonly detail: string;
  /** Machine-readable details. */
  readonly facts?: Readonly<Record<string, string>>;
}

export const isHealthy = ({ status }: Finding): boolean => status === 'ok' || status === 'warn';

export const notChecked = (check: string): Finding => ({
  check,
  status: 'not_checked',
  detail: 'not checked',
});

/** Runs a check and turns an error that it throws into a fault. */
export async function finding(
  check: string,
  look: () => Promise<Omit<Finding, 'check'>>,
  saying: (error: unknown) => string = messageOf,
): Promise<Finding> {
  try {
    return { check, ...(await look()) };
  } catch (error) {
    return { check, status: 'bad', detail: saying(error) };
  }
}

/** @returns the error's code, which `fetch` hides in its cause; `timeout` if there was no response in time */
export function codeOf(error: unknown): string | null {
  const { name, code, cause } = error as NodeJS.ErrnoException & { cause?: NodeJS.ErrnoException };
  if (name === 'TimeoutError') return 'timeout';
  return cause?.code ?? (typeof code === 'string' ? code : null);
}

function messageOf(error: unknown): string {
  const code = codeOf(error);
  const { message } = error as Error;
  return code === null ? message : `${message}: ${code}`;
}
