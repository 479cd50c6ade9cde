import { expect, it } from 'vitest';
import { partnerGroup, scopeOfGroup } from '../../../src/infra/jobs/index.js';

it('names a partner and a mode, and gives them back', () => {
  const scope = { partnerId: 'ptn_01', mode: 'sandbox' } as const;
  expect(scopeOfGroup(partnerGroup(scope))).toEqual(scope);
});

it.each(['', 'ptn_01', 'ptn_01:', ':live', 'ptn_01:test', 'ptn_01:live:live'])(
  'is nobody’s, and not Live, when it reads "%s"',
  (group) => expect(scopeOfGroup(group)).toBeNull(),
);
