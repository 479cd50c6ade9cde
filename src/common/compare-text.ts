/**
 * Compares text by code points, as PostgreSQL's collation C does by UTF-8 bytes: negative when `a` comes first. The
 * operator `<` compares UTF-16 units and sorts characters outside the BMP before its last characters.
 */
export function compareText(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let index = 0; index < length; index++) {
    const [one, other] = [a.charCodeAt(index), b.charCodeAt(index)];
    if (one !== other) return rankOf(one) - rankOf(other);
  }
  return a.length - b.length;
}

/** Ranks surrogates last: they encode code points above U+FFFF. */
function rankOf(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x1_0000 : unit;
}
