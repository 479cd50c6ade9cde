import { isLoopback } from './base-url.js';
import { type Environment, variableOf } from './credentials/paths.js';
import { usageError } from './exit-codes.js';

/** A proxy and the variable that names it. */
interface Proxy {
  readonly url: URL;
  readonly variable: string;
}

// Loaded on demand: without a proxy, importing it would take a quarter of every command's startup time.
const http = (): typeof import('node:http') => process.getBuiltinModule('node:http');

/**
 * Sends calls to `target` through the environment's proxy, if one applies. Call it before the first request.
 * @throws CliError for an unsupported or invalid proxy
 */
export function useProxyFor(target: string, environment: Environment): void {
  const proxy = proxyOf(new URL(target), environment);
  if (proxy === null || isReadByNode(proxy, environment) || !canUseProxies()) return;
  const { href } = proxy.url;
  // The exceptions already excluded `target`. With an empty `no_proxy`, fetch would read the variable again.
  http().setGlobalProxyFromEnv({ http_proxy: href, https_proxy: href, no_proxy: 'localhost' });
}

/** @returns a hint about a proxy for `target` that this Node.js does not use; null if there is none or it is used */
export function ignoredProxy(target: string, environment: Environment): string | null {
  const url = new URL(target);
  const proxy = proxyOf(url, environment);
  if (proxy === null || isReadByNode(proxy, environment) || canUseProxies()) return null;
  const cure = isForAll(proxy) ? `Set ${ownVariable(url).toUpperCase()} to its URL, and` : 'Set';
  return `${proxy.variable} is set, but Node.js ${process.versions.node} ignores it by default. ${cure} NODE_USE_ENV_PROXY=1 (Node.js 22.21 or newer).`;
}

/**
 * @returns the proxy for calls to `target`, without its password; null for direct calls
 * @throws CliError for an unsupported or invalid proxy
 */
export function proxyFor(target: string, environment: Environment): string | null {
  return proxyOf(new URL(target), environment)?.url.origin ?? null;
}

/** Requires Node.js 24.14. */
function canUseProxies(): boolean {
  return typeof http().setGlobalProxyFromEnv === 'function';
}

/** Whether Node.js itself read the variable at startup. */
function isReadByNode(proxy: Proxy, environment: Environment): boolean {
  return readsVariables(environment) && !isForAll(proxy);
}

const readsVariables = (environment: Environment): boolean => environment['NODE_USE_ENV_PROXY'] === '1';

/** ALL_PROXY, which curl reads but Node.js does not. */
const isForAll = ({ variable }: Proxy): boolean => variable.toLowerCase() === 'all_proxy';

const ownVariable = ({ protocol }: URL): string => `${protocol.slice(0, -1)}_proxy`;

/**
 * Selects the proxy as curl does: NO_PROXY first, then the scheme's variable, then ALL_PROXY.
 * @throws CliError for an unsupported or invalid proxy
 */
function proxyOf(target: URL, environment: Environment): Proxy | null {
  if (isExcepted(target, environment)) return null;
  const variable = nameOf(ownVariable(target), environment) ?? nameOf('all_proxy', environment);
  if (variable === undefined) return null;
  const value = variableOf(environment, variable)!;
  const url = URL.parse(value.includes('://') ? value : `http://${value}`);
  if (url !== null && /^https?:$/.test(url.protocol)) return { url, variable };
  throw usageError(
    /^socks/i.test(value)
      ? `${variable} is a SOCKS proxy, which is not supported`
      : `${variable} is not a valid proxy URL`,
    `Set ${ownVariable(target).toUpperCase()} to a URL such as http://proxy.example.com:8080, or set NO_PROXY=${target.hostname} to call the API directly.`,
  );
}

/** @returns the spelling that is set. Lower case wins, as in curl and Node.js. */
function nameOf(name: string, environment: Environment): string | undefined {
  return [name, name.toUpperCase()].find((each) => variableOf(environment, each) !== undefined);
}

/** Loopback never uses a proxy, whatever NO_PROXY says, unless Node.js itself reads the variables. */
function isExcepted(target: URL, environment: Environment): boolean {
  if (isLoopback(target.href) && !readsVariables(environment)) return true;
  const variable = nameOf('no_proxy', environment) ?? 'no_proxy';
  const exceptions =
    variableOf(environment, variable)
      ?.toLowerCase()
      .split(/[\s,]+/) ?? [];
  return exceptions.some((exception) => exception === '*' || covers(exception, target));
}

/** @returns whether an exception covers the host of `target` or a parent domain, and its port if it names one */
function covers(exception: string, { hostname, port, protocol }: URL): boolean {
  const [, name = '', wanted] = /^(\[.*\]|[^:]*)(?::(\d+))?$/.exec(exception) ?? ['', `[${exception}]`];
  const domain = name.replace(/^\*?\./, '');
  if (wanted !== undefined && wanted !== (port || (protocol === 'https:' ? '443' : '80'))) return false;
  return domain !== '' && (hostname === domain || hostname.endsWith(`.${domain}`));
}
