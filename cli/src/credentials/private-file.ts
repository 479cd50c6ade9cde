import { closeSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs';
import path from 'node:path';
import { CliError, EXIT } from '../exit-codes.js';
import { makeFolder } from './make-folder.js';

/** There is no such file, or none for this user: writing it then says why. */
const ABSENT = /^(ENOENT|ENOTDIR|EACCES)$/;

/** The file's text, or null without one that this user may read. @throws Error for any other fault */
export function readPrivateFile(file: string): string | null {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if (ABSENT.test((error as NodeJS.ErrnoException).code ?? '')) return null;
    throw error;
  }
}

/**
 * Replaces a file of mode 0600 as a whole: whoever reads it, after a crash too, sees the old text or the new one. The
 * bytes reach the disk before the name does, or a power cut could leave an empty file.
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
