/** Maximum wait of a call (D39), well below usual proxy timeouts. */
export const MAX_WAIT_SECONDS = 25;

/** One preference of RFC 7240: a token with an optional value and optional parameters, which are ignored. */
const WAIT = /^\s*wait\s*=\s*"?(\d{1,9})"?\s*(;.*)?$/i;

/**
 * Seconds that a caller wants to wait, at most 25; null when it does not want to wait. Invalid preferences are ignored,
 * never refused (RFC 7240, section 2). The first `wait` counts.
 */
export function preferredWaitSeconds(header: string | readonly string[] | undefined): number | null {
  const preferences = [header ?? []].flat().join(',').split(',');
  for (const preference of preferences) {
    const seconds = WAIT.exec(preference)?.[1];
    if (seconds !== undefined)
      return Number(seconds) === 0 ? null : Math.min(Number(seconds), MAX_WAIT_SECONDS);
  }
  return null;
}
