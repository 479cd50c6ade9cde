// Reads .env into the environment. Existing variables win. Node's own reader skips lines that it cannot parse, and a
// setting that is silently missing is noticed late. Here such a line is an error.
import { readFileSync } from 'node:fs';
import { parseEnv } from 'node:util';

const SKIPPED = /[^\S\n]*(?:#[^\n]*)?(?:\n|$)/y;
const NAME = /[^\S\n]*(?:export[^\S\n]+)?[A-Za-z_][A-Za-z0-9_]*[^\S\n]*=[^\S\n]*/y;
// A quoted value may span several lines.
const QUOTED = /(?:"[^"]*"|'[^']*'|`[^`]*`)[^\S\n]*(?:#[^\n]*)?(?:\n|$)/y;
const PLAIN = /[^"'`\n][^\n]*(?:\n|$)|(?:\n|$)/y;

/** @returns the number of the first line that is not `NAME=value`, a comment or empty; null if there is none */
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

/**
 * Decodes a file that may start with a byte order mark, as editors on Windows write it.
 * @throws Error when it is not UTF-8
 */
function textOf(bytes, file) {
  try {
    // The decoder drops a UTF-8 byte order mark. UTF-16 is not valid UTF-8.
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    if (!text.includes('\0')) return text;
  } catch {
    // Reported below.
  }
  throw new Error(`${file} is not UTF-8 text: save it as UTF-8, with or without a byte order mark`);
}

/**
 * Sets the variables in `file` that `env` lacks. Does nothing if the file does not exist.
 * @throws Error with a one-line message for the user. It names the line but never shows its content.
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
