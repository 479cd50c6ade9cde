/**
 * Characters that a terminal or a reader interprets instead of showing: controls (C0, C1), direction marks, line
 * separators, lone surrogates. Keeps the two joiners, because names contain them.
 */
const OBEYED = /[\p{Cc}\p{Zl}\p{Zp}\p{Cs}]|(?![\u200C\u200D])\p{Cf}/gu;

/** Makes text safe for one line of a terminal: replaces each interpreted character with U+FFFD. */
export function printable(text: string): string {
  return text.replace(OBEYED, '\uFFFD');
}

/** Like `printable`, but for several of our own lines, with line breaks and tabs. */
export function printableLines(text: string): string {
  return text.replace(OBEYED, (obeyed) => (obeyed === '\n' || obeyed === '\t' ? obeyed : '\uFFFD'));
}

/** JSON on one line. Escapes interpreted characters, so nothing is lost. */
export function printableJson(value: unknown): string {
  return JSON.stringify(value).replace(OBEYED, (obeyed) =>
    Array.from({ length: obeyed.length }, (_, at) => escaped(obeyed.charCodeAt(at))).join(''),
  );
}

const escaped = (unit: number): string => `\\u${unit.toString(16).padStart(4, '0')}`;
