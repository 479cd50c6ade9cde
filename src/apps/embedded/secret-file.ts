import { renameSync, writeFileSync } from 'node:fs';

/** Writes a file of mode 0600 as a whole or not at all: a kill must not leave half of it for the next start (D2). */
export function writeSecretFile(file: string, content: string): void {
  const draft = `${file}.${process.pid}.draft`;
  writeFileSync(draft, content, { mode: 0o600, flush: true });
  renameSync(draft, file);
}
