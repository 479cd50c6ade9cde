import { getCACertificates } from 'node:tls';
import type { ClientConfig } from 'pg';
import { parse, toClientConfig } from 'pg-connection-string';
import type { EnvReader } from './env-reader.js';

/** Database addresses for transactions and for session features. */
interface DatabaseUrls {
  readonly databaseUrl: string;
  readonly databaseDirectUrl: string;
  readonly databaseIsPooled: boolean;
}

/** A second address means that the first one points to a pooler; otherwise both are equal. */
export function readDatabaseUrls(read: EnvReader): DatabaseUrls {
  const databaseUrl = readDatabaseUrl(read);
  const direct = readPostgresUrl(read, 'DATABASE_DIRECT_URL');
  return {
    databaseUrl,
    databaseDirectUrl: direct ?? databaseUrl,
    databaseIsPooled: direct !== undefined && direct !== databaseUrl,
  };
}

/** Required; the embedded start sets it itself. */
function readDatabaseUrl(read: EnvReader): string {
  const url = readPostgresUrl(read, 'DATABASE_URL');
  if (url === undefined && read.text('DATABASE_URL') === undefined) {
    read.problems.push(
      'DATABASE_URL is required (only `npm start` can run without it, on an embedded PostgreSQL)',
    );
  }
  return url ?? '';
}

/**
 * The parts of a database URL that say where to connect, and as which user. The service sets everything else itself.
 */
export type DatabaseAddress = Pick<
  ClientConfig,
  'host' | 'port' | 'user' | 'password' | 'database' | 'ssl' | 'sslnegotiation' | 'options'
>;

/** Parses a URL as pg does. @throws Error when pg cannot; its message may contain the password */
export function parseDatabaseUrl(url: string): DatabaseAddress {
  const { host, port, user, password, database, ssl, sslnegotiation, options } = toClientConfig(
    parse(url.replace(SYSTEM_AUTHORITIES, '$<start>sslmode=verify-full')),
  );
  return { host, port, user, password, database, ssl: withAuthorities(url, ssl), sslnegotiation, options };
}

/** libpq's name for the operating system's certificate authorities. pg would read a file named `system`. */
const SYSTEM_AUTHORITIES = /(?<start>[?&])sslrootcert=system(?=&|$)/;

/** Adds the system's authorities to those of Node.js. */
function withAuthorities(url: string, ssl: ClientConfig['ssl']): ClientConfig['ssl'] {
  if (typeof ssl !== 'object' || !SYSTEM_AUTHORITIES.test(url)) return ssl;
  return { ...ssl, ca: [...getCACertificates('default'), ...getCACertificates('system')] };
}

function readPostgresUrl(read: EnvReader, name: string): string | undefined {
  const url = read.text(name);
  if (url === undefined) return undefined;
  const problem = problemOf(url);
  if (problem === null) return url;
  read.problems.push(`${name} ${problem}`);
  return undefined;
}

const SSL_MODES = ['disable', 'no-verify', 'prefer', 'require', 'verify-ca', 'verify-full'];
/** User and password, then the hosts. */
const AUTHORITY = /^[a-z]+:\/\/(?:[^/?#]*@)?(?<hosts>[^/?#]*)/i;
const SEVERAL_HOSTS = 'names several hosts: name one, such as an address that follows the primary';
const LARGEST_PORT = 65_535;

/** Describes the URL's fault without revealing any part of the URL. */
function problemOf(url: string): string | null {
  if (!/^(?:postgres(?:ql)?:\/\/|socket:)/i.test(url)) return 'must begin with postgres:// or postgresql://';
  if (AUTHORITY.exec(url)?.groups?.['hosts']?.includes(',')) return SEVERAL_HOSTS;
  const usesSystem = SYSTEM_AUTHORITIES.test(url);
  let parsed;
  try {
    parsed = parse(url.replace(SYSTEM_AUTHORITIES, '$<start>'));
  } catch (error) {
    return problemOfParsing(error as NodeJS.ErrnoException);
  }
  const { host, port, sslmode } = parsed;
  if (host?.includes(',')) return SEVERAL_HOSTS;
  if (port && !(Number(port) >= 1 && Number(port) <= LARGEST_PORT))
    return `has a port that is not a number from 1 to ${LARGEST_PORT}`;
  if (typeof sslmode === 'string' && !SSL_MODES.includes(sslmode))
    return `has an unknown sslmode: use one of ${SSL_MODES.join(', ')}`;
  if (usesSystem && sslmode !== undefined && sslmode !== 'verify-full')
    return 'has sslrootcert=system with a weaker sslmode: use sslmode=verify-full, or leave sslmode out';
  return null;
}

function problemOfParsing({ code, syscall }: NodeJS.ErrnoException): string {
  if (syscall !== undefined)
    return `names a file that cannot be read (${code}): check sslrootcert, sslcert and sslkey`;
  if (code === 'ERR_INVALID_URL')
    return 'is not a valid URL: percent-encode special characters in user and password, @ as %40 and / as %2F';
  return 'has settings that contradict each other: check sslmode, sslrootcert and uselibpqcompat';
}
