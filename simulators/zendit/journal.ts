import { appendFileSync, existsSync, readFileSync } from 'node:fs';

/** An append-only file of JSON lines; the last line of a key wins. Without a path nothing is stored. */
export class Journal<T> {
  private readonly path: string | null;

  constructor(path: string | null) {
    this.path = path;
  }

  append(key: string, value: T): void {
    if (this.path !== null) appendFileSync(this.path, `${JSON.stringify({ key, value })}\n`);
  }

  load(): Map<string, T> {
    const entries = new Map<string, T>();
    if (this.path === null || !existsSync(this.path)) return entries;
    const text = readFileSync(this.path, 'utf8');
    // A killed process may have left half a line, which the next one must not continue.
    if (text !== '' && !text.endsWith('\n')) appendFileSync(this.path, '\n');
    for (const line of text.split('\n')) {
      const entry = parseLine<T>(line);
      if (entry) entries.set(entry.key, entry.value);
    }
    return entries;
  }
}

/** Null for half a line, which has not been confirmed to anyone. */
function parseLine<T>(line: string): { key: string; value: T } | null {
  try {
    return JSON.parse(line) as { key: string; value: T };
  } catch {
    return null;
  }
}
