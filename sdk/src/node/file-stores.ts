import { access, link, mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import type { CursorStore } from '../events.js';
import { type Intent, type IntentOutcome, type IntentStore, storageNameOf } from '../purchases.js';

const OPEN = '.open.json';
const ENDED = '.ended.json';

interface Kept {
  readonly intent: Intent;
  /** Null while it is open. */
  readonly outcome: IntentOutcome | null;
}

/**
 * Keeps each intent in a file, and its end in a second one beside it. A purchase that is tried anew after a refusal gets
 * the next file of its name, so nothing that was written is ever replaced, but by the news that it was bought after all.
 * A completed method survives a loss of power: files are written apart, synchronized and put in place, and so is
 * their folder. A file is readable by its owner alone.
 */
export class FileIntentStore implements IntentStore {
  constructor(private readonly folder: string) {}

  async add(intent: Intent): Promise<Intent> {
    await makeFolder(this.folder);
    const written = await writeApart(this.folder, JSON.stringify(intent));
    try {
      for (const name of triesOf(storageNameOf(intent))) {
        const kept = await this.read(name);
        // Not there a moment ago; it fails when it is now: of two at once, one is first.
        const isFirst = kept === null && (await linkNew(written, this.at(name + OPEN)));
        // Also what another process is just writing has to survive before a byte leaves because of it.
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
    // A refusal is the first word or none; that it was bought is the last.
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
    // Version 0.1.0 kept a top-up under its bare id.
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

/** The names of a purchase and of each new try after a refusal: any id is one, also where upper and lower case are the same. */
function* triesOf(storageName: string): Generator<string, void, undefined> {
  const first = Buffer.from(storageName).toString('hex');
  for (let tries = 1; ; tries++) yield tries === 1 ? first : `${first}~${tries}`;
}

/** Keeps a cursor of the feed in a file. */
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

/** With its missing parents. `mkdir` with `recursive` never returns below /proc. */
async function makeFolder(folder: string): Promise<void> {
  if (await isThere(folder)) return;
  const parent = path.dirname(folder);
  if (parent !== folder) await makeFolder(parent);
  try {
    await mkdir(folder);
  } catch (error) {
    // Another process may have been faster.
    if (!(await isThere(folder))) throw error;
  }
}

const isThere = (folder: string): Promise<boolean> =>
  access(folder).then(
    () => true,
    () => false,
  );

/** Gives a written file its name too, unless something has it. */
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

/** A name that was given or taken is safe only with its folder. Windows has no such call, and needs none. */
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
