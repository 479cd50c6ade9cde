import { createHash } from 'node:crypto';
import { type Environment, fileIn, stateFolder } from '../credentials/paths.js';
import { readPrivateFile, writePrivateFile } from '../credentials/private-file.js';

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
  readonly target: URL;
}

/** The target in one spelling: `URL` has written host and port in one way; a slash at the end makes no other listener. */
function spelled(target: URL): string {
  const url = new URL(target);
  url.hash = '';
  url.pathname = url.pathname.replace(/\/+$/, '');
  return url.href;
}

/** The position of one listener on disk, written after each event that was taken. */
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
