import { existsSync } from 'node:fs';

/** First the one without a window system: each of its pages costs half of Chromium's CPU. */
const CANDIDATES = [
  '/usr/bin/chromium-headless-shell',
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
];

/** The Chromium that `CHROMIUM_PATH` names, or else the one of this machine; null: there is none. */
function findChromium(env: Readonly<Record<string, string | undefined>>): string | null {
  const named = env['CHROMIUM_PATH'];
  const candidates = named === undefined ? CANDIDATES : [named];
  return candidates.find((candidate) => existsSync(candidate)) ?? null;
}

/** For tests and pictures. Imports nothing of ours: scripts load this file as it is. */
export const chromiumPath = findChromium(process.env);

/**
 * Why the portal cannot be driven here; null when it can.
 * @throws Error when `REQUIRE_BROWSER` is set, as by the gate: there a missing browser fails the tests
 */
export function whyNoChromium(env: Readonly<Record<string, string | undefined>>): string | null {
  if (findChromium(env) !== null) return null;
  const reason = 'there is no Chromium (apt-get install chromium, or CHROMIUM_PATH)';
  if (env['REQUIRE_BROWSER'] === '1') throw new Error(`REQUIRE_BROWSER=1, and ${reason}`);
  return reason;
}
