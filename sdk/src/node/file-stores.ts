import { link, mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import type { CursorStore } from '../events.js';
import type { Intent, IntentOutcome, IntentStore } from '../purchases.js';

const OPEN = '.open.json';
const ENDED = '.ended.json';

/**
 * Keeps each intent in a file of its own. What a method has done survives a loss of power: files are written apart,
 * synchronised and put in place, and so is their folder. A file is readable by its owner alone.
 */
export class FileIntentStore implements IntentStore {
  constructor(private readonly folder: string) {}

  async add(intent: Intent): Promise<Intent> {
    await mkdir(this.folder, { recursive: true });
    const name = nameOf(intent.id);
    const ended = await readIfThere(this.at(name + ENDED));
    if (ended) return (JSON.parse(ended) as { intent: Intent }).intent;
    const file = this.at(name + OPEN);
    const written = await writeApart(this.folder, JSON.stringify(intent));
    try {
      // Fails when it is there: of two at once, one is first.
      await link(written, file);
      await syncFolder(this.folder);
      return intent;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
      return JSON.parse(await readFile(file, 'utf8')) as Intent;
    } finally {
      await rm(written, { force: true });
    }
  }

  async finish(id: string, outcome: IntentOutcome): Promise<void> {
    const name = nameOf(id);
    const file = this.at(name + OPEN);
    const open = await readIfThere(file);
    // Another process was faster.
    if (open === null) return;
    const text = JSON.stringify({ intent: JSON.parse(open) as Intent, outcome });
    await rename(await writeApart(this.folder, text), this.at(name + ENDED));
    await syncFolder(this.folder);
    await rm(file, { force: true });
    await syncFolder(this.folder);
  }

  async listOpen(): Promise<readonly Intent[]> {
    await mkdir(this.folder, { recursive: true });
    const names = await readdir(this.folder);
    const open = names.filter((name) => name.endsWith(OPEN) && !names.includes(name.replace(OPEN, ENDED)));
    const texts = await Promise.all(open.map((name) => readIfThere(this.at(name))));
    return texts.flatMap((text) => (text === null ? [] : [JSON.parse(text) as Intent]));
  }

  private at(name: string): string {
    return path.join(this.folder, name);
  }
}

/** Keeps a cursor of the feed in a file. */
export class FileCursorStore implements CursorStore {
  constructor(private readonly file: string) {}

  async load(): Promise<string | null> {
    return readIfThere(this.file);
  }

  async save(cursor: string): Promise<void> {
    const folder = path.dirname(this.file);
    await mkdir(folder, { recursive: true });
    await rename(await writeApart(folder, cursor), this.file);
    await syncFolder(folder);
  }
}

/** Any id is a name: no two have the same, also where upper and lower case are one. */
function nameOf(id: string): string {
  return Buffer.from(id).toString('hex');
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
