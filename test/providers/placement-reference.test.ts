import { describe, expect, it } from 'vitest';
import { newId } from '../../src/common/ids.js';
import { placementReference, readPlacementReference } from '../../src/providers/index.js';

const partnerId = newId('ptn');
const INTENT = {
  partnerId,
  mode: 'live',
  idempotencyKey: 'booking-4711',
  bought: ['pkg_fr_1gb_7d', 1],
} as const;

/** The longest documented limit (eSIM Access, `transactionId`), including the number of an eSIM. */
const LONGEST = 50;

describe('the reference of a purchase at a provider', () => {
  it('is the same for the same call of a partner, without the database', () => {
    const name = placementReference('order', INTENT);
    expect(placementReference('order', { ...INTENT })).toBe(name);
    expect(`${name}-50`.length).toBeLessThanOrEqual(LONGEST);
    expect(readPlacementReference(name)).toEqual({ kind: 'order', partnerId });
  });

  it.each([
    ['another key', { idempotencyKey: 'booking-4712' }],
    ['another package', { bought: ['pkg_de_1gb_7d', 1] }],
    ['another quantity', { bought: ['pkg_fr_1gb_7d', 2] }],
    ['another partner', { partnerId: newId('ptn') }],
  ])('differs for %s', (_what, other) => {
    expect(placementReference('order', { ...INTENT, ...other })).not.toBe(
      placementReference('order', INTENT),
    );
  });

  it('differs for a top-up', () => {
    const name = placementReference('topup', INTENT);
    expect(readPlacementReference(name)).toEqual({ kind: 'topup', partnerId });
    expect(name.slice(3)).not.toBe(placementReference('order', INTENT).slice(3));
  });

  it('is never repeated in Sandbox, where nothing gets lost', () => {
    const names = [1, 2].map(() => placementReference('order', { ...INTENT, mode: 'sandbox' }));
    expect(new Set(names).size).toBe(2);
    expect(readPlacementReference(names[0]!)).toEqual({ kind: 'order', partnerId: null });
  });

  it('is distinguished from the references of other customers of the provider', () => {
    for (const text of ['', 'po_', 'order-1', 'po_01JD', `${placementReference('order', INTENT)}-1`])
      expect(readPlacementReference(text), text).toBeNull();
  });
});
