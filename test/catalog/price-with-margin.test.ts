import { describe, expect, it } from 'vitest';
import { priceWithMargin } from '../../src/catalog/index.js';

describe('a price with a margin', () => {
  it.each([
    ['is the cost with a margin of 0', 2_500_000, 0, 250],
    ['is exact when it is a whole number of cents', 2_000_000, 1_500, 230],
    ['is rounded up to the next cent, never down', 2_500_001, 0, 251],
    ['is rounded up once, after the margin', 2_500_000, 1_501, 288],
    ['is exact for amounts that a float would miss', 9_007_199_254_740_000, 0, 900_719_925_474],
  ])('%s', (_, costMicros, marginBps, cents) => {
    expect(priceWithMargin(costMicros, marginBps)).toBe(cents);
  });
});
