/**
 * The token of exactly one `Authorization: Bearer <token>` line (scheme in any case, one space), else null (D12).
 * Read from the raw headers: Node drops a second Authorization line without a word.
 */
export function bearerToken(rawHeaders: readonly string[]): string | null {
  let value: string | null = null;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if (rawHeaders[i]!.length !== 13 || rawHeaders[i]!.toLowerCase() !== 'authorization') continue;
    if (value !== null) return null;
    value = rawHeaders[i + 1]!;
  }
  if (value === null || value.slice(0, 7).toLowerCase() !== 'bearer ') return null;
  const token = value.slice(7);
  return token === '' || token.includes(' ') ? null : token;
}
