import { expect, it } from 'vitest';
import { partnerGroup, scopeOfGroup } from '../../../src/infra/jobs/index.js';

it('encodes a partner and a mode, and decodes them again', () => {
  const scope = { partnerId: 'ptn_01', mode: 'sandbox' } as const;
  expect(scopeOfGroup(partnerGroup(scope))).toEqual(scope);
});

it.each(['', 'ptn_01', 'ptn_01:', ':live', 'ptn_01:test', 'ptn_01:live:live'])(
  'decodes "%s" as no partner and not Live',
  (group) => expect(scopeOfGroup(group)).toBeNull(),
);
