const SPEED = /(\d+(?:\.\d+)?)\s*([km])bps\b/gi;

/** The speed in a wholesaler's text, in kbit/s: 1,250 for `1.25 Mbps`. Null without one, and for several. */
export function kbpsIn(text: string | null): number | null {
  const found = [...(text ?? '').matchAll(SPEED)];
  const [speed] = found;
  if (found.length !== 1 || !speed) return null;
  return Math.round(Number(speed[1]) * (speed[2]!.toLowerCase() === 'm' ? 1_000 : 1));
}
