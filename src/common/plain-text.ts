/**
 * Characters that drive a terminal or change the order in which text is shown: C0, DEL, C1, the marks, embeddings, overrides
 * and isolates of direction, line and paragraph separators, the byte order mark and annotations. Joiners (U+200C, U+200D)
 * are not among them: Persian and emoji need them. Ranges of UTF-16 units, as every dialect of regular expressions has them.
 */
const CONTROLS = String.raw`\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ufeff\ufff9-\ufffb`;

/** Text of one line, at least one character, without controls; as a pattern of JSON Schema. */
export const LINE_PATTERN = `^[^${CONTROLS}]+$`;
/** The same with line breaks, LF or CRLF. */
export const LINES_PATTERN = String.raw`^([^${CONTROLS}]|\r?\n)+$`;

const LINE = new RegExp(LINE_PATTERN);
const ANY_CONTROLS = new RegExp(`[${CONTROLS}]+`, 'g');
/** JSON escapes C0 by itself, and line breaks end its lines. */
const UNESCAPED_IN_JSON = new RegExp(`[${CONTROLS.replace(String.raw`\u0000-\u001f`, '')}]`, 'g');

/** Whether the text is what `LINE_PATTERN` says. */
export function isLine(text: string): boolean {
  return LINE.test(text);
}

/** The text with a blank in place of each run of controls: for words that others than our callers chose. */
export function withoutControls(text: string): string {
  return text.replace(ANY_CONTROLS, ' ');
}

/** JSON text whose strings hold controls only as escapes, so that a terminal shows it as it is. */
export function escapeControls(json: string): string {
  return json.replace(
    UNESCAPED_IN_JSON,
    (unit) => String.raw`\u` + unit.charCodeAt(0).toString(16).padStart(4, '0'),
  );
}
