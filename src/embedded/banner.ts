import path from 'node:path';
import { exportLines, type LiveDemo } from './demo.js';

export interface BannerFacts {
  readonly apiUrl: string;
  /** Origin of install links. Without a link, it shows nothing. */
  readonly installUrl: string;
  /** Sign-in link to the portal for the demo partner. Works once, within five minutes. */
  readonly portalLink: string;
  /** Null when private webhook targets are refused, so that no demo receiver runs. */
  readonly receiverUrl: string | null;
  /** Shell file that sets the keys and the API address. */
  readonly demoFile: string;
  readonly logFile: string | null;
  readonly apiKey: string;
  /** Null when no simulated wholesaler runs. */
  readonly live: LiveDemo | null;
  /** Milliseconds since the process began, including a build. */
  readonly startedInMs: number;
}

const WIDTH = 78;

/**
 * Renders the first screen for a newcomer in 80 columns and 24 rows: the portal link, and lines to paste as one block
 * into bash or zsh. The block has no comments, because an interactive zsh runs them as commands. It avoids `$RANDOM` in
 * `$(…)`, which always returns the same number there.
 */
export function renderBanner(facts: BannerFacts): string {
  const { apiUrl, apiKey, live } = facts;
  return [
    heading(facts.startedInMs),
    '  The portal, as the demo partner (the link works once, for five minutes):',
    `  ${facts.portalLink}`,
    ...exportLines({ apiUrl, apiKey, liveKey: live?.apiKey ?? null }),
    ...orderLines('$ESIM_API_KEY', 'pkg_fr_1gb_7d'),
    ...afterOrderLines('$ESIM_API_KEY', 'order'),
    ...(live === null ? [] : liveLines(live)),
    `  Paste the lines above (bash, zsh).${describeLive(live)}`,
    `  Install page (POST /v1/esims/{id}/install-links): ${facts.installUrl}`,
    `  ${placesOf(facts).join('; ')}`,
  ].join('\n');
}

function heading(startedInMs: number): string {
  const title = `── Partner eSIM provisioning service · up in ${(startedInMs / 1000).toFixed(1)} s `;
  return title.padEnd(WIDTH, '─');
}

function orderLines(key: string, packageId: string): string[] {
  return [
    `ORDER=$(curl -s -H "Authorization: Bearer ${key}" \\`,
    `  -H "Idempotency-Key: $(date +%s)-tour" "$ESIM_BASE_URL/v1/orders" \\`,
    `  -H 'Content-Type: application/json' -d '{"package_id":"${packageId}"}' |`,
    `  grep -o 'ord_0[0-9A-Z]*')`,
  ];
}

/** Waits for the end of the order, and shows it or the transactions. */
function afterOrderLines(key: string, shown: 'order' | 'transactions'): string[] {
  const call = `curl -s -H "Authorization: Bearer ${key}" -H 'Prefer: wait=25' \\`;
  const order = '"$ESIM_BASE_URL/v1/orders/$ORDER"';
  return shown === 'order'
    ? [call, `  ${order}`]
    : [call, `  -o /dev/null ${order} \\`, `  "$ESIM_BASE_URL/v1/${shown}"`];
}

function liveLines({ packageId }: LiveDemo): string[] {
  return packageId === null
    ? []
    : [...orderLines('$ESIM_LIVE_KEY', packageId), ...afterOrderLines('$ESIM_LIVE_KEY', 'transactions')];
}

function describeLive(live: LiveDemo | null): string {
  if (live === null) return '';
  return live.packageId === null
    ? ' Live: SIMULATED wholesaler, catalog loading.'
    : ' Live: a SIMULATED wholesaler, play money.';
}

function placesOf({ receiverUrl, demoFile, logFile }: BannerFacts): string[] {
  return [
    receiverUrl === null ? 'webhooks: off (WEBHOOK_ALLOW_PRIVATE_TARGETS=false)' : 'webhooks: printed here',
    `keys: . ${shellWord(demoFile)}`,
    ...(logFile === null ? [] : [`log: ${shellWord(logFile)}`]),
  ];
}

/** Quotes a file name for a shell, relative to the working directory unless it lies outside. */
export function shellWord(file: string): string {
  const relative = path.relative(process.cwd(), file);
  const shown = relative === '' || relative.startsWith('..') ? file : relative;
  // `.` searches PATH for a word without a slash, and reads a leading dash as an option.
  const named = shown.includes('/') && !shown.startsWith('-') ? shown : `./${shown}`;
  return /^[\w./-]+$/.test(named) ? named : `'${named.replaceAll("'", String.raw`'\''`)}'`;
}
