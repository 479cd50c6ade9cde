/** Upper bounds of the latency histogram's buckets in milliseconds; one more bucket counts everything above. */
export const LATENCY_BOUNDS_MS = [
  5, 10, 20, 35, 50, 75, 100, 150, 200, 300, 500, 750, 1_000, 1_500, 2_500, 5_000, 10_000, 20_000, 30_000,
  60_000,
] as const;

/**
 * The latency in milliseconds below which `share` of the attempts lie, interpolated linearly within its bucket. Null
 * without attempts.
 * @param counts attempts per bucket, as the statistics store them
 */
export function percentileOf(counts: readonly number[], share: number): number | null {
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total === 0) return null;
  const wanted = share * total;
  let below = 0;
  for (const [index, count] of counts.entries()) {
    if (below + count >= wanted) return within(index, (wanted - below) / count);
    below += count;
  }
  return LATENCY_BOUNDS_MS.at(-1)!;
}

function within(index: number, part: number): number {
  const from = LATENCY_BOUNDS_MS[index - 1] ?? 0;
  const to = LATENCY_BOUNDS_MS[index] ?? LATENCY_BOUNDS_MS.at(-1)!;
  return Math.round(from + (to - from) * part);
}
