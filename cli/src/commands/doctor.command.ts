import { statSync } from 'node:fs';
import { lookup } from 'node:dns/promises';
import { connect } from 'node:tls';
import { once } from 'node:events';
import { isLoopback } from '../base-url.js';
import type { Command } from '../command.js';
import type { Context } from '../context.js';
import { credentialsFile } from '../credentials/stored-credentials.js';
import { EXIT } from '../exit-codes.js';
import { localUrl } from '../listen/local-delivery.js';

export interface Finding {
  readonly check: string;
  readonly ok: boolean;
  readonly detail: string;
}

const CHECK_TIMEOUT_MS = 10_000;
/** Receivers refuse what is 300 s off; a clock that is a tenth of that off is worth a word. */
const MOST_SKEW_SECONDS = 30;
const LEAST_CERTIFICATE_DAYS = 7;

export const doctor: Command = {
  name: 'doctor',
  summary: 'check the way to the API: name, TLS, key, clock, and the local server',
  options: {
    'forward-to': { type: 'string', short: 'f', value: 'url', help: 'also look whether this server answers' },
  },
  examples: [
    { command: 'esim doctor', says: 'everything between here and the API' },
    { command: 'esim doctor --forward-to localhost:4000/webhooks --json', says: 'for a script' },
  ],
  run: async (context, options) => {
    const target = options.text('forward-to');
    const checks = [
      checkNode(),
      ...checkFile(context),
      () => checkName(context),
      () => checkTls(context),
      () => checkClock(context),
      () => checkKey(context),
      ...(target === undefined ? [] : [() => checkLocalServer(localUrl(target))]),
    ];
    let healthy = true;
    for (const check of checks) {
      context.signal.throwIfAborted();
      const finding = typeof check === 'function' ? await check() : check;
      healthy &&= finding.ok;
      const { output } = context;
      output.line(
        `${finding.ok ? output.good('ok  ') : output.bad('BAD ')}  ${finding.check.padEnd(12)}  ${finding.detail}`,
      );
      output.data(finding);
    }
    return healthy ? EXIT.ok : EXIT.failed;
  },
};

function checkNode(): Finding {
  return { check: 'node', ok: true, detail: process.version };
}

/** Nothing without a file: the key may come from the environment. */
function checkFile({ environment }: Context): Finding[] {
  const file = credentialsFile(environment);
  const mode = statSync(file, { throwIfNoEntry: false })?.mode;
  if (mode === undefined) return [];
  const open = (mode & 0o077) !== 0;
  return [
    { check: 'credentials', ok: !open, detail: open ? `${file} can be read by others: chmod 600` : file },
  ];
}

async function checkName({ baseUrl }: Context): Promise<Finding> {
  return finding('name', async () => {
    const { hostname } = new URL(baseUrl);
    const addresses = await lookup(hostname, { all: true });
    return { ok: true, detail: `${hostname} is ${addresses.map(({ address }) => address).join(', ')}` };
  });
}

async function checkTls({ baseUrl }: Context): Promise<Finding> {
  return finding('tls', async () => {
    const { protocol, hostname, port } = new URL(baseUrl);
    const local = isLoopback(baseUrl);
    if (protocol !== 'https:')
      return { ok: local, detail: local ? 'none, on this machine' : 'none: use https' };
    const socket = connect({ host: hostname, port: Number(port || 443), servername: hostname });
    try {
      await once(socket, 'secureConnect', { signal: AbortSignal.timeout(CHECK_TIMEOUT_MS) });
      const days = Math.floor((Date.parse(socket.getPeerCertificate().valid_to) - Date.now()) / 86_400_000);
      return {
        ok: days >= LEAST_CERTIFICATE_DAYS,
        detail: `${socket.getProtocol()}, certificate for ${days} more days`,
      };
    } finally {
      socket.destroy();
    }
  });
}

async function checkClock({ baseUrl }: Context): Promise<Finding> {
  return finding('clock', async () => {
    const answer = await fetch(`${baseUrl}/v1/me`, { signal: AbortSignal.timeout(CHECK_TIMEOUT_MS) });
    await answer.body?.cancel();
    const date = answer.headers.get('date');
    if (date === null) return { ok: true, detail: 'the API says no time' };
    const skew = Math.round((Date.now() - Date.parse(date)) / 1_000);
    return {
      ok: Math.abs(skew) <= MOST_SKEW_SECONDS,
      detail: `${Math.abs(skew)} s off; webhooks are refused from 300 s on`,
    };
  });
}

async function checkKey(context: Context): Promise<Finding> {
  return finding('key', async () => {
    const startedAt = performance.now();
    const me = await context.api.me();
    const ms = Math.round(performance.now() - startedAt);
    return { ok: true, detail: `${me.partner_name}, ${me.mode}, ${me.key_id}, answered in ${ms} ms` };
  });
}

/** A GET: it shows that somebody listens, and nothing is handled. */
async function checkLocalServer(url: URL): Promise<Finding> {
  return finding('local server', async () => {
    const answer = await fetch(url, { redirect: 'manual', signal: AbortSignal.timeout(CHECK_TIMEOUT_MS) });
    await answer.body?.cancel();
    return { ok: true, detail: `${url.origin} answers` };
  });
}

async function finding(check: string, look: () => Promise<Omit<Finding, 'check'>>): Promise<Finding> {
  try {
    return { check, ...(await look()) };
  } catch (error) {
    const { message, cause } = error as Error;
    const reason = (cause as NodeJS.ErrnoException | undefined)?.code;
    return { check, ok: false, detail: reason === undefined ? message : `${message}: ${reason}` };
  }
}
