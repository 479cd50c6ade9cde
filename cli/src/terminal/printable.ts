/**
 * Characters that a terminal or a reader obeys instead of showing: controls (C0, C1), direction marks, line separators,
 * lone surrogates. The two joiners stay, for names are written with them.
 */
const OBEYED = /[\p{Cc}\p{Zl}\p{Zp}\p{Cs}]|(?![\u200C\u200D])\p{Cf}/gu;

/** Text for one line of a terminal, whoever made it: a replacement character stands for each that would be obeyed. */
export function printable(text: string): string {
  return text.replace(OBEYED, '\uFFFD');
}

/** Several of our lines, with tabs. */
export function printableLines(text: string): string {
  return text.replace(OBEYED, (obeyed) => (obeyed === '\n' || obeyed === '\t' ? obeyed : '\uFFFD'));
}

/** JSON on one line: nothing is lost, each such character is escaped. */
export function printableJson(value: unknown): string {
  return JSON.stringify(value).replace(OBEYED, (obeyed) =>
    Array.from({ length: obeyed.length }, (_, at) => escaped(obeyed.charCodeAt(at))).join(''),
  );
}

const escaped = (unit: number): string => `\\u${unit.toString(16).padStart(4, '0')}`;
