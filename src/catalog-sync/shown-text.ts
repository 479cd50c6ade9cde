/** Characters that break lines, hide text or turn its direction around: control and format characters. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu;
const MARKUP = /<\/?[a-z!][^<>]*>/gi;

/**
 * A provider's words as partners may show them: one line without markup and control characters, cut to `maxLength`
 * characters. Null when nothing is left.
 */
export function toShownText(text: string | null, maxLength: number): string | null {
  if (text === null) return null;
  const plain = text.replaceAll(MARKUP, ' ').replaceAll(UNSEEN, ' ').replaceAll(/[<>]/g, ' ');
  const line = [...plain.replaceAll(/\s+/g, ' ').trim()];
  if (line.length === 0) return null;
  return line.length <= maxLength
    ? line.join('')
    : `${line
        .slice(0, maxLength - 1)
        .join('')
        .trimEnd()}…`;
}
