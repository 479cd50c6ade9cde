import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import type { AppConfig, ListenAddress } from '../config/index.js';
import type { Role } from './process-resources.js';

/** A listening address of the process and the variable that sets its port. */
interface NamedAddress extends ListenAddress {
  readonly variable: string;
  /** Purpose of the port, for the message. */
  readonly purpose: string;
}

interface Obstacle {
  readonly address: NamedAddress;
  readonly why: string;
}

/**
 * Tries every address of the process before anything starts.
 * @throws Error that names each port that is not free, its variable, and a command with free ports
 */
export async function assertPortsAreFree(role: Role, config: AppConfig): Promise<void> {
  const addresses = addressesOf(role, config);
  // Held until all are tried, because two variables may name the same port.
  const held: Server[] = [];
  const obstacles: Obstacle[] = [];
  try {
    for (const address of addresses) {
      const attempt = await tryToListen(address);
      if (typeof attempt !== 'string') held.push(...attempt);
      else obstacles.push({ address, why: twinOf(address, addresses) ?? attempt });
    }
    if (obstacles.length > 0) throw new Error(await describe(obstacles, addresses, commandOf(role)));
  } finally {
    await Promise.all(held.map(closed));
  }
}

async function describe(
  obstacles: readonly Obstacle[],
  addresses: readonly NamedAddress[],
  command: string,
): Promise<string> {
  const used = new Set(addresses.map(({ port }) => port));
  const settings: string[] = [];
  for (const { address } of obstacles) {
    const free = await freePortNear(address, used);
    if (free !== null) settings.push(`${address.variable}=${free}`);
  }
  return [
    obstacles.length === 1 ? 'a port is already in use' : `${obstacles.length} ports are already in use`,
    ...obstacles.map(
      ({ address: { variable, port, purpose }, why }) => `  ${variable}=${port}, ${purpose}: ${why}`,
    ),
    'Stop the program that uses the port, or start on free ports:',
    `  ${[...settings, command].join(' ')}`,
  ].join('\n');
}

function commandOf(role: Role): string {
  if (process.env['npm_lifecycle_event'] === 'dev') return 'npm run dev';
  return role === 'all' ? 'npm start' : `npm start -- ${role}`;
}

function addressesOf(role: Role, config: AppConfig): NamedAddress[] {
  const all = role === 'all';
  const address = (
    variable: string,
    purpose: string,
    { host, port }: ListenAddress,
    isWanted: boolean,
  ): NamedAddress[] => (isWanted ? [{ variable, purpose, host, port }] : []);
  return [
    ...address('PORT', 'partner API', config.partnerApi, all || role === 'api'),
    ...address('ADMIN_PORT', 'admin API', config.adminApi, all || role === 'admin'),
    ...address('PORTAL_PORT', 'partner portal', config.portal.listen, all || role === 'portal'),
    ...address('INSTALL_PORT', 'install page', config.install.listen, all || role === 'install'),
    ...address(
      'CALLBACK_PORT',
      "wholesalers' callbacks",
      config.callbacks,
      config.callbacks.secret !== null && (all || role === 'worker') && config.workerJobs.includes('polls'),
    ),
    ...address('OPS_PORT', 'probes and metrics', config.ops, !all),
  ];
}

/** The reason if an earlier variable of this process has the same port. */
function twinOf(address: NamedAddress, addresses: readonly NamedAddress[]): string | undefined {
  const earlier = addresses.slice(0, addresses.indexOf(address));
  const twin = earlier.find(({ port }) => port === address.port && port !== 0);
  return twin && `${twin.variable} has the same port`;
}

const WORDS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'already in use',
  EACCES: 'no permission: ports below 1024 need root',
  EADDRNOTAVAIL: 'this machine does not have the address; set the host',
};

/** Error codes of a machine without IPv6. */
const NO_IPV6 = new Set(['EADDRNOTAVAIL', 'EAFNOSUPPORT']);

/**
 * The listening servers, or the reason why the port is not free. `localhost` may mean ::1, so for 127.0.0.1 the port
 * must be free there too: otherwise another program would receive the calls.
 */
async function tryToListen({ host, port }: ListenAddress): Promise<Server[] | string> {
  const server = await listening(host, port);
  if (server instanceof Error) return `port ${port} on ${host}: ${whyNot(server)}`;
  if (host !== '127.0.0.1' || port === 0) return [server];
  const twin = await listening('::1', port);
  if (!(twin instanceof Error)) return [server, twin];
  if (NO_IPV6.has(twin.code ?? '')) return [server];
  await closed(server);
  return `port ${port} on ::1, which is localhost too: ${whyNot(twin)}`;
}

async function listening(host: string, port: number): Promise<Server | NodeJS.ErrnoException> {
  const server = createServer().listen(port, host);
  try {
    await once(server, 'listening');
    return server;
  } catch (error) {
    return error as NodeJS.ErrnoException;
  }
}

const whyNot = ({ code = '', message }: NodeJS.ErrnoException): string => WORDS[code] ?? message;

const DISTANCE = 10;
const CANDIDATES = 100;

/** Null if no nearby port is free, for example because this machine does not have the address. */
async function freePortNear({ host, port }: ListenAddress, used: Set<number>): Promise<number | null> {
  const first = Math.min(Math.max(port, 1_024) + DISTANCE, 65_535 - CANDIDATES);
  for (let candidate = first; candidate < first + CANDIDATES; candidate += 1) {
    const attempt = used.has(candidate) ? '' : await tryToListen({ host, port: candidate });
    if (typeof attempt === 'string') continue;
    await Promise.all(attempt.map(closed));
    used.add(candidate);
    return candidate;
  }
  return null;
}

async function closed(server: Server): Promise<void> {
  server.close();
  await once(server, 'close');
}
