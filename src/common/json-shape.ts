/** Limits on parsed JSON. */
export interface JsonLimits {
  /** Maximum nesting of objects and lists. */
  readonly depth: number;
  /** Maximum number of names in all objects together; a repeated name counts each time. */
  readonly names: number;
  /** Maximum number of elements in all lists together. */
  readonly elements: number;
}

export type JsonExcess = keyof JsonLimits;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const BLANK = 0x20;

/**
 * The first limit that a JSON text exceeds, found in one pass without parsing. Null when it respects all of them, and
 * for text with an unclosed bracket, which every parser rejects. Parsing and validating 64 KB of small elements costs a
 * hundred times as much.
 * @param limits `depth` at most 32: the pass stores the open lists in the bits of one number
 */
export function findJsonExcess(text: string, limits: JsonLimits): JsonExcess | null {
  let excess: JsonExcess | null = null;
  let depth = 0;
  let names = 0;
  let elements = 0;
  /** Bit n is set when the n-th open bracket opens a list. */
  let lists = 0;
  let isNewList = false;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit <= BLANK) continue;
    if (isNewList && unit !== CLOSE_LIST) elements++;
    isNewList = false;
    switch (unit) {
      case QUOTE:
        i = endOfString(text, i);
        break;
      case OPEN_LIST:
      case OPEN_OBJECT:
        isNewList = unit === OPEN_LIST;
        lists = isNewList ? lists | (1 << depth) : lists & ~(1 << depth);
        if (++depth > limits.depth) excess ??= 'depth';
        break;
      case CLOSE_LIST:
      case CLOSE_OBJECT:
        depth--;
        break;
      case COMMA:
        if ((lists & (1 << (depth - 1))) !== 0) elements++;
        break;
      case COLON:
        if (++names > limits.names) excess ??= 'names';
    }
    if (elements > limits.elements) excess ??= 'elements';
  }
  return depth > 0 ? null : excess;
}

/** Index of the closing quote, or the end of the text. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let escapes = end;
    while (text.charCodeAt(escapes - 1) === BACKSLASH) escapes--;
    if ((end - escapes) % 2 === 0) return end;
  }
  return text.length;
}
