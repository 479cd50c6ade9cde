import { existsSync } from 'node:fs';

const CANDIDATES = [
  process.env['CHROMIUM_PATH'],
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
];

/** The Chromium of this machine, for tests and pictures; null: there is none. Imports nothing: scripts load it as it is. */
export const chromiumPath =
  CANDIDATES.find((candidate) => candidate !== undefined && existsSync(candidate)) ?? null;
