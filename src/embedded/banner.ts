import type { LiveDemo } from './demo.js';

export interface BannerFacts {
  readonly apiUrl: string;
  readonly adminUrl: string;
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

const LINE = '─'.repeat(78);

/** What a newcomer sees: where things are, the key once, three lines to paste. */
export function renderBanner(facts: BannerFacts): string {
  const { apiUrl, apiKey } = facts;
  const auth = `-H 'Authorization: Bearer ${apiKey}'`;
  return [
    '',
    LINE,
    `  Partner eSIM provisioning service · up in ${(facts.startedInMs / 1000).toFixed(1)} s`,
    LINE,
    `  partner API   ${apiUrl}/v1`,
    `  admin API     ${facts.adminUrl}/internal/v1   (token: ${facts.secretsFile})`,
    `  webhooks to   ${describeReceiver(facts.receiverUrl)}`,
    `  data          ${facts.dataDirectory}   (delete it to start afresh)`,
    ...(facts.logFile === null ? [] : [`  log           ${facts.logFile}`]),
    '',
    `  sandbox key   ${apiKey}   (shown once)`,
    '',
    '  1  browse the catalogue',
    `curl -s ${auth} '${apiUrl}/v1/catalog?country=FR&type=country&kind=base&limit=3'`,
    '',
    '  2  order an eSIM',
    `curl -s ${auth} -H "Idempotency-Key: $(date +%s)-$RANDOM$RANDOM" -H 'Content-Type: application/json' -d '{"package_id":"pkg_fr_1gb_7d"}' ${apiUrl}/v1/orders`,
    '',
    '  3  read the newest eSIM, with its installation data',
    `curl -s ${auth} "${apiUrl}/v1/esims/$(curl -s ${auth} '${apiUrl}/v1/esims?limit=1' | grep -o 'esim_[0-9A-Z]*' | head -1)"`,
    '',
    ...(facts.live === null ? [] : liveLines(facts, facts.live)),
    '  Ctrl-C stops everything; the data stays.',
    LINE,
    '',
  ].join('\n');
}

function describeReceiver(url: string | null): string {
  if (url === null) return 'nobody: the demo receiver is off (WEBHOOK_ALLOW_PRIVATE_TARGETS=false)';
  return `${url}   (this process: verifies and prints what arrives)`;
}

const KEY = `-H "Idempotency-Key: $(date +%s)-$RANDOM$RANDOM"`;
const JSON_TYPE = `-H 'Content-Type: application/json'`;

function liveLines({ apiUrl, adminUrl, secretsFile }: BannerFacts, live: LiveDemo): string[] {
  const auth = `-H 'Authorization: Bearer ${live.apiKey}'`;
  const adminAuth = `-H "Authorization: Bearer $(sed -n 's/^ADMIN_TOKENS=portal://p' '${secretsFile}')"`;
  const newest = `$(curl -s ${auth} '${apiUrl}/v1/esims?limit=1' | grep -o 'esim_[0-9A-Z]*' | head -1)`;
  const wallet = `${adminUrl}/internal/v1/partners/${live.partnerId}/wallet`;
  return [
    '  LIVE MODE, with a SIMULATED wholesaler on loopback: nothing real is bought, no card is charged',
    '',
    `  live key      ${live.apiKey}   (shown once)`,
    '',
    '  4  deposit 50 dollars into the wallet, as the portal team would',
    `curl -s ${adminAuth} ${JSON_TYPE} -d "{\\"amount\\":{\\"amount\\":5000,\\"currency\\":\\"USD\\"},\\"reference\\":\\"tour-$(date +%s)\\"}" ${wallet}/deposits`,
    '',
    ...orderLines(apiUrl, auth, live.packageId),
    '  6  top it up, as soon as the eSIM is there and the wholesaler has said what fits it',
    `until esim=${newest}; fits=$(curl -s ${auth} "${apiUrl}/v1/esims/$esim/topup-packages" | grep -o 'pkg_[A-Za-z0-9_-]*' | head -1); [ "$fits" ]; do sleep 1; done; curl -s ${auth} ${KEY} ${JSON_TYPE} -d "{\\"esim_id\\":\\"$esim\\",\\"package_id\\":\\"$fits\\"}" ${apiUrl}/v1/topups`,
    '',
    '  7  read the statement',
    `curl -s ${auth} ${apiUrl}/v1/transactions`,
    '',
  ];
}

function orderLines(apiUrl: string, auth: string, packageId: string | null): string[] {
  const id =
    packageId ??
    `$(curl -s ${auth} '${apiUrl}/v1/catalog?kind=base&limit=1' | grep -o 'pkg_[A-Za-z0-9_-]*' | head -1)`;
  return [
    '  5  order a live eSIM; the price is held, and charged when it is issued',
    ...(packageId !== null
      ? []
      : ['     (the live catalogue is still SYNCHRONISING: until it is there, the answer is a 404)']),
    `curl -s ${auth} ${KEY} ${JSON_TYPE} -d "{\\"package_id\\":\\"${id}\\"}" ${apiUrl}/v1/orders`,
    '',
  ];
}
