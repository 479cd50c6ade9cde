import { access, link, mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import type { CursorStore } from '../events.js';
import { type Intent, type IntentOutcome, type IntentStore, storageNameOf } from '../purchases.js';

const OPEN = '.open.json';
const ENDED = '.ended.json';

interface Kept {
  readonly intent: Intent;
  /** Null while the intent is open. */
  readonly outcome: IntentOutcome | null;
}

/**
 * Stores each intent in a file, and its outcome in a second one next to it. A new attempt after a refusal gets the next
 * numbered file, so no file is ever replaced, except when a refused purchase turns out to have been bought. A completed
 * method survives a power failure: files are written to a temporary name, synced and moved into place, and their folder
 * is synced too. Only the owner can read the files.
 */
export class FileIntentStore implements IntentStore {
  constructor(private readonly folder: string) {}

  async add(intent: Intent): Promise<Intent> {
    await makeFolder(this.folder);
    const written = await writeApart(this.folder, JSON.stringify(intent));
    try {
      for (const name of triesOf(storageNameOf(intent))) {
        const kept = await this.read(name);
        // The file did not exist a moment ago. If two processes try at once, the link succeeds for only one of them.
        const isFirst = kept === null && (await linkNew(written, this.at(name + OPEN)));
        // Sync even if another process created the file. It must survive before any request is sent because of it.
        await syncFolder(this.folder);
        if (isFirst) return intent;
        const { intent: first, outcome } = kept ?? (await this.read(name))!;
        if (outcome === null || 'resultId' in outcome) return first;
      }
      throw new Error('there is always a next name');
    } finally {
      await rm(written, { force: true });
    }
  }

  async finish(intent: Intent, outcome: IntentOutcome): Promise<void> {
    const name = await this.find(intent);
    if (name === null) return;
    const written = await writeApart(this.folder, JSON.stringify({ intent, outcome }));
    // A refusal never replaces an earlier outcome. A success always does.
    if ('resultId' in outcome) await rename(written, this.at(name + ENDED));
    else await linkNew(written, this.at(name + ENDED));
    await rm(written, { force: true });
    await syncFolder(this.folder);
  }

  async listOpen(): Promise<readonly Intent[]> {
    await makeFolder(this.folder);
    const names = new Set(await readdir(this.folder));
    const open = [...names].filter((name) => name.endsWith(OPEN) && !names.has(name.replace(OPEN, ENDED)));
    const texts = await Promise.all(open.map((name) => readIfThere(this.at(name))));
    return texts.flatMap((text) => (text === null ? [] : [JSON.parse(text) as Intent]));
  }

  private async find({ kind, id, idempotencyKey }: Intent): Promise<string | null> {
    // Version 0.1.0 stored a top-up under its bare id.
    for (const base of new Set([storageNameOf({ kind, id }), id]))
      for (const name of triesOf(base)) {
        const kept = await this.read(name);
        if (kept === null) break;
        if (kept.intent.idempotencyKey === idempotencyKey) return name;
      }
    return null;
  }

  private async read(name: string): Promise<Kept | null> {
    const ended = await readIfThere(this.at(name + ENDED));
    if (ended !== null) return JSON.parse(ended) as Kept;
    const open = await readIfThere(this.at(name + OPEN));
    return open === null ? null : { intent: JSON.parse(open) as Intent, outcome: null };
  }

  private at(name: string): string {
    return path.join(this.folder, name);
  }
}

/**
 * File names of a purchase and of its attempts after refusals. Hex encoding makes every id a valid name, also on
 * case-insensitive file systems.
 */
function* triesOf(storageName: string): Generator<string, void, undefined> {
  const first = Buffer.from(storageName).toString('hex');
  for (let tries = 1; ; tries++) yield tries === 1 ? first : `${first}~${tries}`;
}

/** Stores a cursor of the feed in a file. */
export class FileCursorStore implements CursorStore {
  constructor(private readonly file: string) {}

  async load(): Promise<string | null> {
    return readIfThere(this.file);
  }

  async save(cursor: string): Promise<void> {
    const folder = path.dirname(this.file);
    await makeFolder(folder);
    await rename(await writeApart(folder, cursor), this.file);
    await syncFolder(folder);
  }
}

/** Creates a folder and its missing parents. Avoids recursive `mkdir`, which never returns below /proc. */
async function makeFolder(folder: string): Promise<void> {
  if (await isThere(folder)) return;
  const parent = path.dirname(folder);
  if (parent !== folder) await makeFolder(parent);
  try {
    await mkdir(folder);
  } catch (error) {
    // Another process may have created it first.
    if (!(await isThere(folder))) throw error;
  }
}

const isThere = (folder: string): Promise<boolean> =>
  access(folder).then(
    () => true,
    () => false,
  );

/** Links a written file to its final name, unless that name exists. */
async function linkNew(written: string, file: string): Promise<boolean> {
  try {
    await link(written, file);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

async function writeApart(folder: string, text: string): Promise<string> {
  const file = path.join(folder, `.${crypto.randomUUID()}.tmp`);
  const handle = await open(file, 'wx', 0o600);
  try {
    await handle.writeFile(text);
    await handle.sync();
  } finally {
    await handle.close();
  }
  return file;
}

/**
 * Makes created and renamed files durable, which requires a sync of their folder. Windows has no such call and needs
 * none.
 */
async function syncFolder(folder: string): Promise<void> {
  if (process.platform === 'win32') return;
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function readIfThere(file: string): Promise<string | null> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}
