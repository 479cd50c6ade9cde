import { existsSync } from 'node:fs';

/** Headless shell first, because its pages need half the CPU. */
const CANDIDATES = [
  '/usr/bin/chromium-headless-shell',
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
];

/** The Chromium of `CHROMIUM_PATH` or of this machine, or null if there is none. */
function findChromium(env: Readonly<Record<string, string | undefined>>): string | null {
  const named = env['CHROMIUM_PATH'];
  const candidates = named === undefined ? CANDIDATES : [named];
  return candidates.find((candidate) => existsSync(candidate)) ?? null;
}

/** For tests and screenshots. Imports none of our modules, because scripts load this file directly. */
export const chromiumPath = findChromium(process.env);

/**
 * The reason why the portal cannot be driven here, or null when it can.
 * @throws Error when `REQUIRE_BROWSER` is set, as in CI, where a missing browser must fail the tests
 */
export function whyNoChromium(env: Readonly<Record<string, string | undefined>>): string | null {
  if (findChromium(env) !== null) return null;
  const reason = 'there is no Chromium (apt-get install chromium, or CHROMIUM_PATH)';
  if (env['REQUIRE_BROWSER'] === '1') throw new Error(`REQUIRE_BROWSER=1, and ${reason}`);
  return reason;
}
