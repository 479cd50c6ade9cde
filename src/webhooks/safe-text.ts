/**
 * Foreign bytes as text that PostgreSQL takes: invalid UTF-8 becomes U+FFFD, NUL is removed. A character that the
 * cap has cut in two is dropped.
 */
export function toSafeText(bytes: Buffer, wasCut: boolean): string {
  const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes, { stream: wasCut });
  return text.replaceAll('\0', '');
}
