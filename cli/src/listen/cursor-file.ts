import { createHash } from 'node:crypto';
import { type Environment, fileIn, stateFolder } from '../credentials/paths.js';
import { readPrivateFile, writePrivateFile } from '../credentials/private-file.js';

/** A listener's position in the feed. */
export interface FeedPosition {
  /** Start of the page being forwarded: a `next_cursor`, or null for the beginning of the feed. */
  readonly page: string | null;
  /** The last event of that page that the local server accepted. */
  readonly event: string | null;
}

/**
 * Identifies a listener. The file's name is derived from all of these fields, because listeners that share a cursor
 * would each get only some of the events.
 */
export interface ListenerIdentity {
  readonly baseUrl: string;
  readonly partnerId: string;
  readonly mode: string;
  readonly target: URL;
}

/** Normalizes what `URL` does not. Targets that differ only in a fragment or trailing slash are the same listener. */
function spelled(target: URL): string {
  const url = new URL(target);
  url.hash = '';
  url.pathname = url.pathname.replace(/\/+$/, '');
  return url.href;
}

/** One listener's position on disk, saved after each accepted event. */
export class CursorFile {
  readonly path: string;

  /** @throws CliError for a user without a home folder */
  constructor(environment: Environment, identity: ListenerIdentity) {
    const { baseUrl, partnerId, mode, target } = identity;
    const name = createHash('sha256')
      .update([baseUrl, partnerId, mode, spelled(target)].join('\n'))
      .digest('hex')
      .slice(0, 16);
    this.path = fileIn(stateFolder(environment), `listen-${name}.json`);
  }

  read(): FeedPosition | null {
    const text = readPrivateFile(this.path);
    return text === null ? null : (JSON.parse(text) as FeedPosition);
  }

  write(position: FeedPosition): void {
    writePrivateFile(this.path, `${JSON.stringify(position)}\n`);
  }
}
