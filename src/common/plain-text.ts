/**
 * Characters that control a terminal or change the direction of text: C0, DEL, C1, directional marks, embeddings,
 * overrides and isolates, line and paragraph separators, the byte order mark and annotations. Joiners (U+200C, U+200D)
 * are excluded, because Persian and emoji need them. Written as ranges of UTF-16 units, which every regular expression
 * dialect supports.
 */
const CONTROLS = String.raw`\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ufeff\ufff9-\ufffb`;

/** JSON Schema pattern of one line with at least one character and no controls. */
export const LINE_PATTERN = `^[^${CONTROLS}]+$`;
/** The same with line breaks, LF or CRLF. */
export const LINES_PATTERN = String.raw`^([^${CONTROLS}]|\r?\n)+$`;

const LINE = new RegExp(LINE_PATTERN);
const ANY_CONTROLS = new RegExp(`[${CONTROLS}]+`, 'g');
/** Excludes C0: JSON escapes it in strings, and the line breaks between JSON lines must stay. */
const UNESCAPED_IN_JSON = new RegExp(`[${CONTROLS.replace(String.raw`\u0000-\u001f`, '')}]`, 'g');

/** Whether the text matches `LINE_PATTERN`. */
export function isLine(text: string): boolean {
  return LINE.test(text);
}

/** Replaces each run of controls by a space, for text chosen by third parties. */
export function withoutControls(text: string): string {
  return text.replace(ANY_CONTROLS, ' ');
}

/** JSON whose strings contain controls only as escapes, so that a terminal shows it unchanged. */
export function escapeControls(json: string): string {
  return json.replace(
    UNESCAPED_IN_JSON,
    (unit) => String.raw`\u` + unit.charCodeAt(0).toString(16).padStart(4, '0'),
  );
}
