import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readFile, rename, writeFile } from 'node:fs/promises';
import net from 'node:net';
import path from 'node:path';
import { EmbeddedPostgresError, oneLine, systemCode } from './errors.js';

/** The only address on which the embedded server listens. */
export const HOST = '127.0.0.1';

/** Written into a data directory by its first successful start. */
export const PORT_FILE = 'embedded.port';

/** Maximum path length of a Unix-domain socket on macOS; Linux allows four bytes more. */
const MAX_SOCKET_PATH = 103;

/**
 * Folder for the server's Unix-domain socket, which costs less per statement than TCP. It is the data folder, which no
 * other user can enter. Empty if PostgreSQL or the system does not support one there.
 */
export function socketDirectoryOf(dataDir: string): string {
  const isShort = Buffer.byteLength(socketIn(dataDir, 65_535)) <= MAX_SOCKET_PATH;
  // PostgreSQL parses the setting as a list of folders.
  return isShort && !/[,"]|^\s|\s$/.test(dataDir) ? dataDir : '';
}

/** The connection URL's parameter for the socket; empty when the server has none, as in older versions. */
export function socketParameter(dataDir: string, port: number): string {
  return existsSync(socketIn(dataDir, port)) ? `?host=${encodeURIComponent(dataDir)}` : '';
}

const socketIn = (dataDir: string, port: number): string => path.join(dataDir, `.s.PGSQL.${port}`);

/**
 * The TCP port for the next start: the fixed one, or the cluster's last one, or any free one.
 * @returns undefined while the fixed port is taken
 * @throws EmbeddedPostgresError when the fixed port can never be used
 */
export async function choosePort(dataDir: string, fixed: number | undefined): Promise<number | undefined> {
  if (fixed !== undefined) return (await isFixedPortFree(fixed)) ? fixed : undefined;
  const stored = Number(await readFile(portFileOf(dataDir), 'utf8').catch(() => ''));
  return isPort(stored) && (await isFree(stored)) ? stored : freePort();
}

/** Stores the port, so that clients find the server again after a restart. */
export async function storePort(dataDir: string, port: number): Promise<void> {
  const file = portFileOf(dataDir);
  const draft = `${file}.${process.pid}`;
  await writeFile(draft, `${port}\n`);
  await rename(draft, file);
}

async function isFixedPortFree(port: number): Promise<boolean> {
  if (!isPort(port)) throw new EmbeddedPostgresError(`${port} is not a TCP port (1 to 65535)`);
  try {
    await listenBriefly(port);
    return true;
  } catch (error) {
    if (systemCode(error) === 'EADDRINUSE') return false;
    const message = `port ${port} on ${HOST} cannot be used: ${oneLine(error)}`;
    throw new EmbeddedPostgresError(message, { cause: error });
  }
}

async function isFree(port: number): Promise<boolean> {
  return listenBriefly(port).then(
    () => true,
    () => false,
  );
}

function freePort(): Promise<number> {
  return listenBriefly(0);
}

async function listenBriefly(port: number): Promise<number> {
  const server = net.createServer().listen(port, HOST);
  await once(server, 'listening');
  const { port: bound } = server.address() as net.AddressInfo;
  server.close();
  await once(server, 'close');
  return bound;
}

function isPort(port: number): boolean {
  return Number.isInteger(port) && port > 0 && port <= 65_535;
}

function portFileOf(dataDir: string): string {
  return path.join(dataDir, PORT_FILE);
}
