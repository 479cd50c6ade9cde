import { existsSync, mkdirSync } from 'node:fs';
import path from 'node:path';

/**
 * Creates a folder and its missing parents with mode 0700. Avoids recursive `mkdir`, which never returns below /proc.
 * @throws NodeJS.ErrnoException
 */
export function makeFolder(folder: string): void {
  if (existsSync(folder)) return;
  const parent = path.dirname(folder);
  if (parent !== folder) makeFolder(parent);
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    // Another process may have created it first.
    if (!existsSync(folder)) throw error;
  }
}
