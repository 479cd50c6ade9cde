import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync, renameSync, rmSync } from 'node:fs';
import { connect, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { makeFolder } from '../credentials/make-folder.js';
import { CliError, EXIT } from '../exit-codes.js';

/** Longer paths are silently truncated. `sockaddr_un` has 104 bytes on macOS and 108 on Linux. */
const MAX_SOCKET_PATH = 103;
/** Errors when connecting to a socket that was removed or has no listener. */
const NOT_HELD = /^(ECONNREFUSED|ENOENT|ENOTSOCK)$/;

/**
 * Prevents a second listener from using the same cursor file. A listener holds a socket next to the file. The kernel
 * knows whether the socket is held, even by a frozen process, and releases it when the process ends. A process id would
 * not work, because in a container every listener is process 1, and after a reboot any process may get the number.
 *
 * Each listener uses its own socket name and publishes the socket before it looks for others. So no listener removes a
 * socket that another has just created. Of several listeners that start at once, none overlooks the others: at most one
 * keeps running, and perhaps none.
 * @returns a function that releases the lock
 * @throws CliError while another listener is running
 */
export async function lockListener(cursorFile: string): Promise<() => void> {
  return process.platform === 'win32' ? lockPipe(cursorFile) : lockSocket(cursorFile);
}

async function lockSocket(cursorFile: string): Promise<() => void> {
  const { folder, prefix } = placeOf(cursorFile);
  makeFolder(folder);
  const own = `${prefix}${process.pid}.${randomBytes(3).toString('hex')}.lock`;
  const file = path.join(folder, own);
  // Rename only after listening has started. Between bind and listen, the socket would look abandoned.
  const server = await holding(`${file}.new`);
  renameSync(`${file}.new`, file);
  const release = (): void => {
    server.close();
    rmSync(file, { force: true });
  };
  try {
    await refuseOthers(folder, (name) => name.startsWith(prefix) && name.endsWith('.lock') && name !== own);
  } catch (error) {
    release();
    throw error;
  }
  return release;
}

/**
 * Removes the sockets of dead listeners.
 * @throws CliError when another listener is alive
 */
async function refuseOthers(folder: string, isOther: (name: string) => boolean): Promise<void> {
  for (const name of readdirSync(folder).filter(isOther)) {
    const file = path.join(folder, name);
    if (await isHeld(file)) throw taken(`process ${name.split('.').at(-3)}`, file);
    rmSync(file, { force: true });
  }
}

/**
 * Next to the cursor file, so that containers that share it share the sockets too. If the path is too long, in the
 * temporary folder.
 */
function placeOf(cursorFile: string): { folder: string; prefix: string } {
  const folder = path.dirname(cursorFile);
  const prefix = `${path.basename(cursorFile, '.json')}.`;
  const longest = path.join(folder, `${prefix}4194304.abcdef.lock.new`);
  if (Buffer.byteLength(longest) <= MAX_SOCKET_PATH) return { folder, prefix };
  return { folder: tmpdir(), prefix: `esim-${digest(cursorFile)}.` };
}

/** Windows has no file for a pipe. The name is free once its process has ended. */
async function lockPipe(cursorFile: string): Promise<() => void> {
  const pipe = `\\\\.\\pipe\\esim-${digest(cursorFile)}`;
  const server = await holding(pipe).catch((error: NodeJS.ErrnoException) => {
    throw error.code === 'EADDRINUSE' ? taken('another process', pipe) : error;
  });
  return () => void server.close();
}

async function holding(name: string): Promise<Server> {
  const server = createServer((visitor) => visitor.destroy()).unref();
  server.listen(name);
  await once(server, 'listening');
  return server;
}

/** Only the kernel's refusal proves that nobody holds the socket. A full queue or missing permissions do not. */
async function isHeld(file: string): Promise<boolean> {
  const visitor = connect(file);
  try {
    await once(visitor, 'connect');
    return true;
  } catch (error) {
    return !NOT_HELD.test((error as NodeJS.ErrnoException).code ?? '');
  } finally {
    visitor.destroy();
  }
}

const digest = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 16);

const taken = (who: string, by: string): CliError =>
  new CliError(EXIT.failed, `${who} is already listening for the same URL`, `Stop it first. It holds ${by}.`);
