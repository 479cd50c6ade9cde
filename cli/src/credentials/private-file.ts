import { closeSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs';
import path from 'node:path';
import { CliError, EXIT } from '../exit-codes.js';
import { makeFolder } from './make-folder.js';

/** The file does not exist or this user cannot read it. In the latter case, writing it reports the cause. */
const ABSENT = /^(ENOENT|ENOTDIR|EACCES)$/;

/**
 * @returns the file's text, or null if it does not exist or this user may not read it
 * @throws Error for any other failure
 */
export function readPrivateFile(file: string): string | null {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if (ABSENT.test((error as NodeJS.ErrnoException).code ?? '')) return null;
    throw error;
  }
}

/**
 * Replaces a file of mode 0600 atomically, so that readers see either the old or the new text, even after a crash.
 * Flushes the bytes to disk before the rename. Otherwise a power cut could leave an empty file.
 * @throws CliError when the file cannot be written
 */
export function writePrivateFile(file: string, text: string): void {
  try {
    replaceFile(file, text);
  } catch (error) {
    throw new CliError(
      EXIT.failed,
      `${file} cannot be written (${(error as NodeJS.ErrnoException).code})`,
      'Set HOME to a folder that this user can write to.',
    );
  }
}

function replaceFile(file: string, text: string): void {
  makeFolder(path.dirname(file));
  const temporary = `${file}.${process.pid}.tmp`;
  const descriptor = openSync(temporary, 'w', 0o600);
  try {
    writeSync(descriptor, text);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
  renameSync(temporary, file);
}
