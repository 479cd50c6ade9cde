import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type Environment, stateFolder } from '../credentials/paths.js';
import { readPrivateFile, writePrivateFile } from '../credentials/private-file.js';
import { CliError, EXIT } from '../exit-codes.js';

/** How far a listener has come in the feed. */
export interface FeedPosition {
  /** Where the page began that is being forwarded: a `next_cursor`; null at the feed's beginning. */
  readonly page: string | null;
  /** The last event of that page which the local server has taken. */
  readonly event: string | null;
}

/** Listeners that share a cursor would each get a part of the events: what they differ in is in the file's name. */
export interface ListenerIdentity {
  readonly baseUrl: string;
  readonly partnerId: string;
  readonly mode: string;
  readonly target: string;
}

/** The position of one listener on disk, written after each event that was taken. */
export class CursorFile {
  readonly path: string;

  constructor(environment: Environment, identity: ListenerIdentity) {
    const { baseUrl, partnerId, mode, target } = identity;
    const name = createHash('sha256')
      .update([baseUrl, partnerId, mode, target].join('\n'))
      .digest('hex')
      .slice(0, 16);
    this.path = path.join(stateFolder(environment), `listen-${name}.json`);
  }

  read(): FeedPosition | null {
    const text = readPrivateFile(this.path);
    return text === null ? null : (JSON.parse(text) as FeedPosition);
  }

  write(position: FeedPosition): void {
    writePrivateFile(this.path, `${JSON.stringify(position)}\n`);
  }

  /**
   * Keeps a second listener away while this one runs; what a killed one left behind is taken over.
   * @throws CliError while another process holds it
   */
  lock(): () => void {
    const file = `${this.path}.lock`;
    mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
    for (;;) {
      try {
        writeFileSync(file, String(process.pid), { flag: 'wx', mode: 0o600 });
        return () => rmSync(file, { force: true });
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
      }
      const holder = Number(holderOf(file));
      if (isAlive(holder)) {
        throw new CliError(
          EXIT.failed,
          `process ${holder} listens for the same URL already`,
          `If it does not, remove ${file}.`,
        );
      }
      rmSync(file, { force: true });
    }
  }
}

function holderOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    // It was released in this very moment.
    return '0';
  }
}

function isAlive(pid: number): boolean {
  if (!Number.isInteger(pid) || pid <= 0) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
