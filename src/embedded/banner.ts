import path from 'node:path';
import type { LiveDemo } from './demo.js';

export interface BannerFacts {
  readonly apiUrl: string;
  readonly adminUrl: string;
  /** A link into the portal as the demo partner: it works once, within five minutes. */
  readonly portalLink: string;
  readonly partnerId: string;
  /** Null: private webhook targets are refused, so no demo receiver runs. */
  readonly receiverUrl: string | null;
  readonly dataDirectory: string;
  readonly secretsFile: string;
  readonly logFile: string | null;
  readonly apiKey: string;
  /** Null when no simulated wholesaler runs. */
  readonly live: LiveDemo | null;
  readonly startedInMs: number;
}

const WIDTH = 78;
const LINE = '─'.repeat(WIDTH);
const IDEMPOTENCY = `-H "Idempotency-Key: $RANDOM$RANDOM$RANDOM"`;

/**
 * What a newcomer sees, on one screen of 80 columns and 24 rows, with the line `ready` and the cursor below it: the link to
 * click, two lines with the keys, lines that use them. No row is left empty: there is none to spare.
 */
export function renderBanner(facts: BannerFacts): string {
  const { apiKey, live } = facts;
  return [
    heading(facts.startedInMs),
    '  The portal, as the demo partner (the link works once, for five minutes):',
    `  ${facts.portalLink}`,
    `export KEY=${apiKey}`,
    ...(live === null ? [] : [`export LIVE_KEY=${live.apiKey}`]),
    ...sandboxLines(host(facts.apiUrl)),
    ...(live === null ? [] : liveLines(host(facts.apiUrl), live)),
    '# another link into the portal, by the admin API',
    ...linkLines(facts),
    `  webhooks to ${describeReceiver(facts.receiverUrl)}`,
    `  data in     ${shown(facts.dataDirectory)} (Ctrl-C keeps it; delete it to start afresh)`,
    ...(facts.logFile === null ? [] : [`  log in      ${shown(facts.logFile)}`]),
    LINE,
    '',
  ].join('\n');
}

function heading(startedInMs: number): string {
  const title = `── Partner eSIM provisioning service · up in ${(startedInMs / 1000).toFixed(1)} s `;
  return title.padEnd(WIDTH, '─');
}

/** curl needs no scheme. */
function host(url: string): string {
  return url.replace('http://', '');
}

function curl(key: string, ...lines: readonly string[]): string {
  return [`curl -s --oauth2-bearer ${key}`, ...lines].join(' ');
}

function sandboxLines(api: string): string[] {
  return [
    '# browse, order an eSIM, see it',
    curl('$KEY', `'${api}/v1/catalog?kind=base&limit=3'`),
    curl('$KEY', `${IDEMPOTENCY} \\`),
    `  --json '{"package_id":"pkg_fr_1gb_7d"}' ${api}/v1/orders`,
    curl('$KEY', `'${api}/v1/esims?limit=1'`),
  ];
}

function liveLines(api: string, { packageId }: LiveDemo): string[] {
  const order =
    packageId === null
      ? ['# (the live catalogue is still SYNCHRONISING: order when it lists something)', browseLive(api)]
      : [curl('$LIVE_KEY', `${IDEMPOTENCY} \\`), `  --json '{"package_id":"${packageId}"}' ${api}/v1/orders`];
  return [
    '# Live, with a SIMULATED wholesaler: nothing real is bought',
    ...order,
    curl('$LIVE_KEY', `${api}/v1/transactions`),
  ];
}

function browseLive(api: string): string {
  return curl('$LIVE_KEY', `'${api}/v1/catalog?kind=base&limit=1'`);
}

function linkLines({ adminUrl, secretsFile, partnerId }: BannerFacts): string[] {
  const token = `$(sed -n 's/^ADMIN_TOKENS=portal://p' ${shown(secretsFile)})`;
  return [
    `curl -s --json '{"actor":{"id":"me"}}' --oauth2-bearer \\`,
    `  "${token}" ${host(adminUrl)}/\\`,
    `internal/v1/partners/${partnerId}/portal-sessions`,
  ];
}

function describeReceiver(url: string | null): string {
  if (url === null) return 'nobody: demo receiver is off (WEBHOOK_ALLOW_PRIVATE_TARGETS=false)';
  return `${url} (here: verified, printed)`;
}

/** From the working directory, in which the lines are pasted; absolute when it lies elsewhere. */
function shown(file: string): string {
  const relative = path.relative(process.cwd(), file);
  return relative === '' || relative.startsWith('..') ? file : relative;
}
