import { type Environment, variableOf } from './credentials/paths.js';
import { usageError } from './exit-codes.js';

/** A proxy is no way to this machine, whatever it is called. */
const LOOPBACK = 'localhost,127.0.0.1,[::1]';

// Not imported above, where no proxy is set: it takes a quarter of the time that any command takes to begin.
const http = (): typeof import('node:http') => process.getBuiltinModule('node:http');

/** Node.js has read the variables itself as it began. */
const isReadByNode = (environment: Environment): boolean => environment['NODE_USE_ENV_PROXY'] === '1';

/** Sends calls of the API through HTTPS_PROXY and HTTP_PROXY, but for what NO_PROXY names and for this machine. */
export function useProxyOf(environment: Environment): void {
  const proxies = proxiesOf(environment);
  if (proxies === null || isReadByNode(environment) || !canUseProxies()) return;
  http().setGlobalProxyFromEnv({ ...proxies, no_proxy: exceptionsOf(environment) });
}

/** What to do about a proxy that this Node.js does not use; null when there is none or it does. */
export function ignoredProxy(environment: Environment): string | null {
  if (proxiesOf(environment) === null || isReadByNode(environment) || canUseProxies()) return null;
  return `HTTPS_PROXY or HTTP_PROXY is set, and Node.js ${process.versions.node} does not use it by itself. Set NODE_USE_ENV_PROXY=1 (Node.js 22.21 or newer).`;
}

/** The proxy of calls to `url`, without its password; null when they go there directly. */
export function proxyFor(url: URL, environment: Environment): string | null {
  const proxy = proxiesOf(environment)?.[url.protocol === 'https:' ? 'https_proxy' : 'http_proxy'];
  if (proxy === undefined || isExcepted(url, exceptionsOf(environment))) return null;
  return new URL(proxy).origin;
}

/** Since Node.js 24.14. */
function canUseProxies(): boolean {
  return typeof http().setGlobalProxyFromEnv === 'function';
}

function proxiesOf(environment: Environment): { http_proxy?: string; https_proxy?: string } | null {
  const [http_proxy, https_proxy] = ['http_proxy', 'https_proxy'].map((name) => proxyIn(environment, name));
  if (http_proxy === undefined && https_proxy === undefined) return null;
  return { ...(http_proxy && { http_proxy }), ...(https_proxy && { https_proxy }) };
}

/** @throws CliError for a value that is no proxy */
function proxyIn(environment: Environment, name: string): string | undefined {
  const value = eitherCase(environment, name);
  if (value === undefined) return undefined;
  const proxy = value.includes('://') ? value : `http://${value}`;
  if (/^https?:/.test(proxy) && URL.canParse(proxy)) return proxy;
  throw usageError(
    `${name.toUpperCase()} is not the URL of a proxy`,
    'Set it to a URL such as http://proxy.example.com:8080, or unset it.',
  );
}

/** Lower case first, as curl and Node.js read them. */
function eitherCase(environment: Environment, name: string): string | undefined {
  return variableOf(environment, name) ?? variableOf(environment, name.toUpperCase());
}

/** `*`, which stands for everything, alone or not at all. */
function exceptionsOf(environment: Environment): string {
  const given = eitherCase(environment, 'no_proxy');
  if (given === '*') return given;
  return [given, isReadByNode(environment) ? undefined : LOOPBACK]
    .filter((each) => each !== undefined)
    .join(',');
}

function isExcepted({ hostname, host }: URL, exceptions: string): boolean {
  if (exceptions === '*') return true;
  return exceptions
    .toLowerCase()
    .split(/[\s,]+/)
    .map((name) => name.replace(/^\*\./, '.'))
    .some((name) => [hostname, host].includes(name) || (name.startsWith('.') && hostname.endsWith(name)));
}
