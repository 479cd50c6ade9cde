/** D39: the longest that a call waits; well below what proxies grant. */
const MOST_SECONDS = 25;

/** One preference of RFC 7240: a token, perhaps with a value, perhaps with parameters that nobody reads here. */
const WAIT = /^\s*wait\s*=\s*"?(\d{1,9})"?\s*(;.*)?$/i;

/**
 * The seconds that a caller wants to wait, at most 25; null when it does not want to, or in words that nobody
 * understands: a preference is never refused (RFC 7240, section 2). The first `wait` counts.
 */
export function preferredWaitSeconds(header: string | readonly string[] | undefined): number | null {
  const preferences = [header ?? []].flat().join(',').split(',');
  for (const preference of preferences) {
    const seconds = WAIT.exec(preference)?.[1];
    if (seconds !== undefined) return Number(seconds) === 0 ? null : Math.min(Number(seconds), MOST_SECONDS);
  }
  return null;
}
