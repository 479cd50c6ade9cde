// Reads .env into the environment; variables that are set already win. Node's own reader skips lines that it does not
// understand, and a setting that is silently not set is found late: here such a line is an error.
import { readFileSync } from 'node:fs';
import { parseEnv } from 'node:util';

const SKIPPED = /[^\S\n]*(?:#[^\n]*)?(?:\n|$)/y;
const NAME = /[^\S\n]*(?:export[^\S\n]+)?[A-Za-z_][A-Za-z0-9_]*[^\S\n]*=[^\S\n]*/y;
// A quoted value may span several lines.
const QUOTED = /(?:"[^"]*"|'[^']*'|`[^`]*`)[^\S\n]*(?:#[^\n]*)?(?:\n|$)/y;
const PLAIN = /[^"'`\n][^\n]*(?:\n|$)|(?:\n|$)/y;

/** @returns the number of the first line that is not `NAME=value`, a comment or empty; null when there is none */
export function malformedLine(text) {
  let at = 0;
  const skip = (pattern) => {
    pattern.lastIndex = at;
    const isThere = pattern.test(text);
    if (isThere) at = pattern.lastIndex;
    return isThere;
  };
  while (at < text.length) {
    const start = at;
    if (skip(SKIPPED) || (skip(NAME) && (skip(QUOTED) || skip(PLAIN)))) continue;
    return text.slice(0, start).split('\n').length;
  }
  return null;
}

/** Editors on Windows begin a file with a byte order mark. @throws Error when it is not UTF-8 */
function textOf(bytes, file) {
  try {
    // Removes the mark of UTF-8. That of UTF-16 is no UTF-8.
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    if (!text.includes('\0')) return text;
  } catch {
    // Said below.
  }
  throw new Error(`${file} is not UTF-8 text: save it as UTF-8, with or without a byte order mark`);
}

/**
 * Sets what `file` sets and `env` does not have; does nothing when there is no such file.
 * @throws Error with one line for the person who typed the command; it names the line and never its content
 */
export function loadEnvFile(file, env = process.env) {
  let bytes;
  try {
    bytes = readFileSync(file);
  } catch (error) {
    if (error.code === 'ENOENT') return;
    throw new Error(`cannot read ${file} (${error.code})`, { cause: error });
  }
  const text = textOf(bytes, file).replaceAll(/\r\n?/g, '\n');
  const line = malformedLine(text);
  if (line !== null) {
    throw new Error(`${file}, line ${line}: expected NAME=value; begin a comment with #, close every quote`);
  }
  for (const [name, value] of Object.entries(parseEnv(text))) env[name] ??= value;
}
