import type { EnvReader } from './env-reader.js';

export interface RedisNode {
  readonly host: string;
  readonly port: number;
}

/** Login of an ACL user, or of the default user when there is only a password. */
export interface RedisLogin {
  readonly username?: string;
  readonly password?: string;
}

/** One server, which may be a proxy or a name that follows failovers. */
interface SingleRedis {
  readonly topology: 'single';
  readonly url: string;
}

/** A primary with replicas; sentinels know the current primary. */
export interface RedisBehindSentinels {
  readonly topology: 'sentinel';
  readonly sentinels: readonly RedisNode[];
  /** The primary's name at the sentinels. */
  readonly primary: string;
  readonly database: number;
  /** TLS for the servers and the sentinels. */
  readonly tls: boolean;
  readonly login: RedisLogin;
  readonly sentinelLogin: RedisLogin;
}

/** Address of Redis or Valkey, and how to find it after a failover (D1). */
export type RedisAddress = SingleRedis | RedisBehindSentinels;

const SENTINEL_PORT = 26_379;
const OF_SENTINELS =
  /^(redis|rediss)\+sentinel:\/\/(?:([^@/?#]*)@)?([^@/?#]+)(?:\/([^?#]*))?(?:\?([^#]*))?$/i;
const HOST_AND_PORT = /^(?:\[([0-9a-f:.]+)\]|([^:[\]\s]+))(?::([0-9]{1,5}))?$/i;
/** A sentinel primary name and an optional database. */
const PRIMARY = /^([\w.-]+)(?:\/([0-9]{1,4})?)?$/;

/** A value is refused. The message never repeats any part of the value, which may belong to an unencoded password. */
class WrongAddress extends Error {}

/** `REDIS_URL`; null when it is unset, or wrong and reported. */
export function readRedisAddress(read: EnvReader): RedisAddress | null {
  const text = read.text('REDIS_URL');
  if (text === undefined) return null;
  try {
    return parseRedisAddress(text);
  } catch (error) {
    if (!(error instanceof WrongAddress)) throw error;
    read.problems.push(`REDIS_URL ${error.message}`);
    return null;
  }
}

function parseRedisAddress(text: string): RedisAddress {
  if (/^rediss?:\/\//i.test(text)) return parseSingle(text);
  const [, scheme, login, hosts, path, query] = OF_SENTINELS.exec(text) ?? [];
  if (scheme === undefined || hosts === undefined) {
    throw new WrongAddress(
      'must start with redis://, rediss://, redis+sentinel:// or rediss+sentinel://; special characters in a ' +
        'password must be percent-encoded (@ as %40, / as %2F)',
    );
  }
  return {
    topology: 'sentinel',
    tls: scheme.toLowerCase() === 'rediss',
    login: parseLogin(login),
    ...parseSentinels(hosts, path, query),
  };
}

/** ioredis parses everything else in the address. */
function parseSingle(text: string): RedisAddress {
  if (!URL.canParse(text)) {
    throw new WrongAddress(
      'is not the URL of one server; use redis+sentinel:// for several, and special characters in a password must be ' +
        'percent-encoded (@ as %40, / as %2F)',
    );
  }
  const { username, password } = new URL(text);
  [username, password].forEach(decode);
  // ioredis treats `REDISS://` as an address without TLS.
  return { topology: 'single', url: text.replace(/^\w+/, (scheme) => scheme.toLowerCase()) };
}

function parseSentinels(
  hosts: string,
  path: string | undefined,
  query: string | undefined,
): Pick<RedisBehindSentinels, 'sentinels' | 'primary' | 'database' | 'sentinelLogin'> {
  const [, primary, database] = PRIMARY.exec(decode(path ?? '')) ?? [];
  if (primary === undefined) {
    throw new WrongAddress(
      'must end with the name of the primary as the sentinels know it, optionally followed by a database: ' +
        'redis+sentinel://host1:26379,host2:26379/mymaster/0',
    );
  }
  const options = parseOptions(query);
  const username = options.get('sentinel_username');
  const password = options.get('sentinel_password');
  if (options.size > [username, password].filter((value) => value !== undefined).length)
    throw new WrongAddress('accepts only the options sentinel_username and sentinel_password');
  return {
    sentinels: parseNodes(hosts),
    primary,
    database: Number(database ?? 0),
    sentinelLogin: toLogin(username, password),
  };
}

function parseNodes(hosts: string): readonly RedisNode[] {
  return hosts.split(',').map((text) => {
    const [, address, name, digits] = HOST_AND_PORT.exec(text) ?? [];
    const host = address ?? name;
    const port = Number(digits ?? SENTINEL_PORT);
    if (host === undefined || port < 1 || port > 65_535)
      throw new WrongAddress(
        'must name its servers as host1:port,host2:port, with IPv6 addresses in brackets',
      );
    return { host, port };
  });
}

/** `user:password`, or `:password`. */
function parseLogin(text: string | undefined): RedisLogin {
  if (text === undefined || text === '') return {};
  const colon = text.indexOf(':');
  if (colon < 0) return toLogin(decode(text), undefined);
  return toLogin(decode(text.slice(0, colon)), decode(text.slice(colon + 1)));
}

function toLogin(username: string | undefined, password: string | undefined): RedisLogin {
  const isNamed = username !== undefined && username !== '';
  if (password === undefined || password === '') {
    if (isNamed)
      throw new WrongAddress('names a user without a password; write a password alone as :password@');
    return {};
  }
  return isNamed ? { username, password } : { password };
}

/** Not `URLSearchParams`, which would decode a `+` in a password as a space. */
function parseOptions(query: string | undefined): ReadonlyMap<string, string> {
  const pairs = (query ?? '').split('&').filter((pair) => pair !== '');
  return new Map(
    pairs.map((pair) => {
      const sign = pair.indexOf('=');
      return sign < 0 ? [decode(pair), ''] : [decode(pair.slice(0, sign)), decode(pair.slice(sign + 1))];
    }),
  );
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new WrongAddress('has a percent sign that encodes nothing; write a literal percent sign as %25');
  }
}
