import { describe, expect, it } from 'vitest';
import { type InstallData, needsConfirmationCode, toActivationCode } from '../../src/esims/esim.js';

const PARTS: InstallData = { smdpAddress: 'smdp.example.com', matchingId: 'AB-12', confirmationCode: null };

describe('an activation code', () => {
  it.each([
    ['LPA:1$smdp.example.com$AB-12$1.3.6.1.4.1$1', 'LPA:1$smdp.example.com$AB-12$1.3.6.1.4.1$1'],
    ['1$smdp.example.com$AB-12', 'LPA:1$smdp.example.com$AB-12'],
    [null, 'LPA:1$smdp.example.com$AB-12'],
    ['LPA:1$smdp.example.com$AB-12$"><script>', 'LPA:1$smdp.example.com$AB-12'],
  ])('keeps all parts of %s that are safe in a link', (given, shown) => {
    expect(toActivationCode({ ...PARTS, activationCode: given })).toBe(shown);
  });

  it('is built from its parts for an eSIM that was issued without it', () => {
    expect(toActivationCode(PARTS)).toBe('LPA:1$smdp.example.com$AB-12');
  });

  it('requires a confirmation code only if its fifth part says so', () => {
    const codes = ['LPA:1$a$b', 'LPA:1$a$b$1.2', 'LPA:1$a$b$$1', 'LPA:1$a$b$1.2$1', 'LPA:1$a$b$1$0'];
    expect(codes.map(needsConfirmationCode)).toEqual([false, false, true, true, false]);
    const own = toActivationCode({ ...PARTS, confirmationCode: '7' });
    expect([own, needsConfirmationCode(own)]).toEqual(['LPA:1$smdp.example.com$AB-12$$1', true]);
  });
});
