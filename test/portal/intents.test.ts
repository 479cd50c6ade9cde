import { beforeEach, describe, expect, it } from 'vitest';
import { Intents } from '../../portal/src/api/intents.ts';

const TEN_MINUTES_MS = 600_000;

let now = 0;
let intents: Intents;

beforeEach(() => {
  now = 0;
  intents = new Intents(() => now);
});

describe('the Idempotency-Key of a change in the portal', () => {
  it('remains the same until a response arrives, and changes afterwards', () => {
    const first = intents.keyOf('api-keys', { name: 'till' });
    expect(first).toMatch(/^[0-9a-f]{32}$/);
    expect(intents.keyOf('api-keys', { name: 'till' })).toBe(first);
    intents.settle('api-keys', { name: 'till' });
    expect(intents.keyOf('api-keys', { name: 'till' })).not.toBe(first);
  });

  it('differs for another body and another object, because the server would refuse a reused key', () => {
    const keys = [
      intents.keyOf('api-keys', { name: 'till' }),
      intents.keyOf('api-keys', { name: 'shop' }),
      intents.keyOf('deliveries/dlv_1/resend', undefined),
      intents.keyOf('deliveries/dlv_2/resend', undefined),
    ];
    expect(new Set(keys).size).toBe(4);
  });

  it('is not reused for the next turn of the switch after it was turned back', () => {
    const on = intents.keyOf('webhook-endpoints/whe_1/enable', undefined);
    intents.keyOf('webhook-endpoints/whe_1/disable', undefined);
    intents.settle('webhook-endpoints/whe_1/disable', undefined);
    expect(intents.keyOf('webhook-endpoints/whe_1/enable', undefined)).not.toBe(on);
  });

  it('is not affected by a late response to an earlier request', () => {
    intents.keyOf('api-keys', { name: 'till' });
    const second = intents.keyOf('api-keys', { name: 'shop' });
    intents.settle('api-keys', { name: 'till' });
    expect(intents.keyOf('api-keys', { name: 'shop' })).toBe(second);
  });

  it('expires after ten minutes', () => {
    const first = intents.keyOf('webhook-endpoints/whe_1/test', undefined);
    now = TEN_MINUTES_MS - 1;
    expect(intents.keyOf('webhook-endpoints/whe_1/test', undefined)).toBe(first);
    now = TEN_MINUTES_MS;
    expect(intents.keyOf('webhook-endpoints/whe_1/test', undefined)).not.toBe(first);
  });
});
