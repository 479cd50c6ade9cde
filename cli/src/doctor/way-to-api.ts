import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import { connect } from 'node:tls';
import { isLoopback } from '../base-url.js';
import type { Context } from '../context.js';
import type { Environment } from '../credentials/paths.js';
import { CliError } from '../exit-codes.js';
import { isApiError } from '../partner-api.js';
import { ignoredProxy, proxyFor, useProxyFor } from '../proxy.js';
import { hintFor, KEY_CURE } from '../refusal-hints.js';
import { counted } from '../terminal/values.js';
import { codeOf, type Finding, finding, isHealthy, notChecked } from './finding.js';

const CHECK_TIMEOUT_MS = 10_000;
/** Receivers reject timestamps that are 300 s off. Report a clock that is off by a tenth of that. */
const MAX_SKEW_SECONDS = 30;
const MIN_CERTIFICATE_DAYS = 7;

/** Why the API could not be reached, by error code. */
const NOT_REACHED: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing is listening there',
  ENOTFOUND: 'the host does not exist',
  EAI_AGAIN: 'the host name cannot be resolved',
  timeout: `no response within ${CHECK_TIMEOUT_MS / 1_000} s`,
};

const AFTER_REACH = ['name', 'tls', 'clock', 'key'];

/** Checks every step from this machine to the API. After the first failure, the later steps are skipped. */
export async function* wayToApi(context: Context): AsyncGenerator<Finding> {
  const { baseUrl, environment } = context;
  let proxy: string | null;
  try {
    useProxyFor(baseUrl, environment);
    proxy = yield* proxyOf(baseUrl, environment);
  } catch (error) {
    yield { check: 'proxy', ...bad(messageFor(error)) };
    return yield* ['reach', ...AFTER_REACH].map(notChecked);
  }
  const reached: { date?: string | null } = {};
  const first = await finding('reach', () => reach(context, reached), messageFor);
  yield first;
  if (!isHealthy(first)) return yield* AFTER_REACH.map(notChecked);
  if (proxy === null) {
    yield await finding('name', () => nameOf(context));
    yield await finding('tls', () => tlsOf(context));
  } else {
    for (const check of ['name', 'tls'])
      yield { check, status: 'ok', detail: `checked by the proxy ${proxy}` };
  }
  yield clockFinding(reached.date ?? null);
  yield await finding(
    'key',
    () => keyOf(context),
    (error) => refusedKey(error, context.baseUrl),
  );
}

/** Finds the proxy for the API. Yields no finding if none is set. */
function* proxyOf(baseUrl: string, environment: Environment): Generator<Finding, string | null> {
  const check = 'proxy';
  const proxy = proxyFor(baseUrl, environment);
  if (proxy === null) return null;
  const ignored = ignoredProxy(baseUrl, environment);
  if (ignored !== null) {
    yield { check, status: 'warn', detail: ignored };
    return null;
  }
  yield { check, status: 'ok', detail: `${baseUrl} through ${proxy}` };
  return proxy;
}

type Look = Promise<Omit<Finding, 'check'>>;

/** Calls without a key. Only this API responds with 401 and a request id. */
async function reach({ baseUrl, signal }: Context, reached: { date?: string | null }): Look {
  try {
    const answer = await fetch(`${baseUrl}/v1/me`, {
      redirect: 'manual',
      signal: AbortSignal.any([signal, AbortSignal.timeout(CHECK_TIMEOUT_MS)]),
    });
    await answer.body?.cancel();
    reached.date = answer.headers.get('date');
    if (answer.headers.get('x-request-id')?.startsWith('req_')) return { status: 'ok', detail: baseUrl };
    return bad(`${baseUrl} is not this API (status ${answer.status}). ${BASE_URL_CURE}`);
  } catch (error) {
    signal.throwIfAborted();
    const code = codeOf(error);
    const { message, cause } = error as Error;
    const why = NOT_REACHED[code ?? ''] ?? (cause instanceof Error ? cause.message : message);
    return bad(`${baseUrl}: ${why}${code === null ? '' : ` (${code})`}. ${BASE_URL_CURE}`);
  }
}

const BASE_URL_CURE = 'Check the base URL: it comes from --base-url, ESIM_BASE_URL or `esim login`.';

async function nameOf({ baseUrl }: Context): Look {
  const host = hostOf(baseUrl);
  const addresses = await lookup(host, { all: true });
  return { status: 'ok', detail: `${host} is ${addresses.map(({ address }) => address).join(', ')}` };
}

async function tlsOf({ baseUrl }: Context): Look {
  const { protocol, port } = new URL(baseUrl);
  if (protocol !== 'https:')
    return isLoopback(baseUrl)
      ? { status: 'ok', detail: 'not needed on this machine' }
      : bad(`not used. Change the base URL to https (${baseUrl}).`);
  const host = hostOf(baseUrl);
  const socket = connect({ host, port: Number(port || 443), servername: host });
  try {
    await once(socket, 'secureConnect', { signal: AbortSignal.timeout(CHECK_TIMEOUT_MS) });
    const days = Math.floor((Date.parse(socket.getPeerCertificate().valid_to) - Date.now()) / 86_400_000);
    const detail = `${socket.getProtocol()}, certificate valid for ${counted(days, 'more day')}`;
    return days >= MIN_CERTIFICATE_DAYS
      ? { status: 'ok', detail }
      : bad(`${detail}. Tell the operator of the API to renew it.`);
  } finally {
    socket.destroy();
  }
}

function clockFinding(date: string | null): Finding {
  const check = 'clock';
  if (date === null) return { check, status: 'ok', detail: 'not checked: the API sent no Date header' };
  const skew = Math.abs(Math.round((Date.now() - Date.parse(date)) / 1_000));
  const detail = `${skew} s off; servers reject webhooks that are more than 300 s off`;
  if (skew <= MAX_SKEW_SECONDS) return { check, status: 'ok', detail };
  return { check, status: 'bad', detail: `${detail}. Synchronize this machine's clock (NTP).` };
}

async function keyOf(context: Context): Look {
  const startedAt = performance.now();
  const me = await context.api.me();
  const ms = Math.round(performance.now() - startedAt);
  return { status: 'ok', detail: `${me.partner_name}, ${me.mode}, ${me.key_id}, response in ${ms} ms` };
}

function refusedKey(error: unknown, baseUrl: string): string {
  if (isApiError(error)) {
    const { code, detail } = error;
    return [`${baseUrl} returned ${code}: ${detail}`, hintFor(error)].filter(Boolean).join(' ');
  }
  const text = messageFor(error);
  return error instanceof CliError && !text.includes('esim login') ? `${text} ${KEY_CURE}` : text;
}

function messageFor(error: unknown): string {
  const { message } = error as Error;
  return error instanceof CliError && error.hint !== undefined ? `${message}. ${error.hint}` : message;
}

/** Removes the brackets of an IPv6 address, which belong to URLs only. */
const hostOf = (baseUrl: string): string => new URL(baseUrl).hostname.replace(/^\[|\]$/g, '');

const bad = (detail: string): Omit<Finding, 'check'> => ({ status: 'bad', detail });
