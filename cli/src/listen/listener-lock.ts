import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync, renameSync, rmSync } from 'node:fs';
import { connect, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { makeFolder } from '../credentials/make-folder.js';
import { CliError, EXIT } from '../exit-codes.js';

/** A longer one is cut off in silence: `sockaddr_un` has 104 bytes on macOS, 108 on Linux. */
const MAX_SOCKET_PATH = 103;
/** Errors of connecting to a socket without a listener, or to a removed one. */
const NOT_HELD = /^(ECONNREFUSED|ENOENT|ENOTSOCK)$/;

/**
 * Keeps a second listener with the same cursor file away. A listener holds a socket beside the file: the kernel says
 * whether somebody does, frozen or not, and forgets it with the process. A process id says nothing: in a container every
 * listener is process 1, and after a restart of the machine anyone has the number.
 *
 * Each has a socket of its own name, and shows it before it looks for others. So none removes what another has just made,
 * and of those that start at once none overlooks the other: one listens at most, and perhaps none.
 * @returns what lets go of it
 * @throws CliError while another listener is there
 */
export async function lockListener(cursorFile: string): Promise<() => void> {
  return process.platform === 'win32' ? lockPipe(cursorFile) : lockSocket(cursorFile);
}

async function lockSocket(cursorFile: string): Promise<() => void> {
  const { folder, prefix } = placeOf(cursorFile);
  makeFolder(folder);
  const own = `${prefix}${process.pid}.${randomBytes(3).toString('hex')}.lock`;
  const file = path.join(folder, own);
  // Under its name only when it can be connected to: between bind and listen it looks like one that nobody holds.
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

/** Removes what dead listeners left. @throws CliError when one lives */
async function refuseOthers(folder: string, isOther: (name: string) => boolean): Promise<void> {
  for (const name of readdirSync(folder).filter(isOther)) {
    const file = path.join(folder, name);
    if (await isHeld(file)) throw taken(`process ${name.split('.').at(-3)}`, file);
    rmSync(file, { force: true });
  }
}

/** Beside the cursor file, where containers that share it share the sockets, too; else where the path is short. */
function placeOf(cursorFile: string): { folder: string; prefix: string } {
  const folder = path.dirname(cursorFile);
  const prefix = `${path.basename(cursorFile, '.json')}.`;
  const longest = path.join(folder, `${prefix}4194304.abcdef.lock.new`);
  if (Buffer.byteLength(longest) <= MAX_SOCKET_PATH) return { folder, prefix };
  return { folder: tmpdir(), prefix: `esim-${digest(cursorFile)}.` };
}

/** Windows has no file for a pipe: its name is free when its process is gone. */
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

/** Only what the kernel denies is not held: a full queue and missing rights are no denial. */
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
