export interface BannerFacts {
  readonly apiUrl: string;
  readonly adminUrl: string;
  readonly receiverUrl: string;
  readonly dataDirectory: string;
  readonly secretsFile: string;
  readonly logFile: string | null;
  readonly apiKey: string;
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
    `  Partner eSIM provisioning service · Sandbox · up in ${(facts.startedInMs / 1000).toFixed(1)} s`,
    LINE,
    `  partner API   ${apiUrl}/v1`,
    `  admin API     ${facts.adminUrl}/internal/v1   (token: ${facts.secretsFile})`,
    `  webhooks to   ${facts.receiverUrl}   (this process: verifies and prints what arrives)`,
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
    '  Ctrl-C stops everything; the data stays.',
    LINE,
    '',
  ].join('\n');
}
