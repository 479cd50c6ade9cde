import { describe, expect, it } from 'vitest';
import { EsimAccessUpstream } from './esim-access-upstream.js';
import { benchOf } from './orders-suite.js';
import { buy } from './shop.js';
import type { Upstream } from './upstream.js';
import { ZenditUpstream } from './zendit-upstream.js';

/** The second look must come before it is over on any machine: then, and only then, an order that is not shown is lost. */
const READ_LAG_MS = '30000';

describe.each<[string, () => Promise<Upstream>]>([
  ['eSIM Access', () => EsimAccessUpstream.start()],
  ['Zendit', () => ZenditUpstream.start()],
])('an order whose answer was lost at %s', (_, start) => {
  const bench = benchOf(start, { PROVIDER_READ_LAG_MS: READ_LAG_MS });

  it('and that is shown only at the second look within the read lag is not placed again', async () => {
    const { shop, upstream, price } = bench;
    const buyer = await shop.buyer(price);
    const before = upstream.arrivals('order');
    upstream.dropAnswersAfterCommit(1);
    upstream.hideNewOnesForLooks(1);
    const done = await buy(buyer, upstream.packageId);
    expect(done).toMatchObject({ status: 'issued' });
    expect(upstream.arrivals('order') - before, 'placements sent').toBe(1);
    expect((await shop.row(done['id'] as string))['upstream_attempts'], 'looks').toBeGreaterThan(2);
  });
});
