import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ProviderOutcomeUnknown } from '../../src/providers/index.js';
import {
  arrayAt,
  countAt,
  instantAt,
  instantOrNullAt,
  integerAt,
  textAt,
  textOrNullAt,
  ProviderResponseInvalid,
} from '../../src/providers/http/index.js';

describe('reading a provider response', () => {
  it('returns a value of the right type or throws ProviderOutcomeUnknown for any JSON', () => {
    const readers = [
      [textAt, (value: unknown) => typeof value === 'string' && value !== ''],
      [integerAt, (value: unknown) => Number.isSafeInteger(value)],
      [countAt, (value: unknown) => Number.isSafeInteger(value) && (value as number) >= 0],
      [arrayAt, (value: unknown) => Array.isArray(value)],
      [instantAt, (value: unknown) => value instanceof Date && !Number.isNaN(value.getTime())],
    ] as const;
    fc.assert(
      fc.property(fc.jsonValue(), fc.constantFrom(...readers), (value, [readAt, isRight]) => {
        try {
          expect(isRight(readAt({ field: value }, 'field'))).toBe(true);
        } catch (error) {
          expect(error).toBeInstanceOf(ProviderResponseInvalid);
          expect(error).toBeInstanceOf(ProviderOutcomeUnknown);
        }
      }),
    );
  });

  it('removes control characters and direction marks from texts that people see', () => {
    const text = 'Europe\u001b[31m\u009b\u202e 5 GB\r\n';
    expect(textAt({ text }, 'text')).toBe('Europe [31m  5 GB ');
    expect(textOrNullAt({ text: 'Zoë 👩‍🚀' }, 'text')).toBe('Zoë 👩‍🚀');
  });

  it('refuses texts that PostgreSQL would reject, and numbers that have lost digits', () => {
    for (const text of ['a\0b', '\ud800', 'x'.repeat(5_000), ''])
      expect(() => textAt({ text }, 'text')).toThrow(ProviderResponseInvalid);
    const parsed = JSON.parse('{"n": 9007199254740993}') as Record<string, unknown>;
    expect(() => integerAt(parsed, 'n')).toThrow(ProviderResponseInvalid);
    expect(() => countAt({ n: -1 }, 'n')).toThrow(ProviderResponseInvalid);
  });

  it('does not read the prototype', () => {
    expect(textOrNullAt({}, 'constructor')).toBeNull();
    expect(() => textAt(JSON.parse('{"__proto__": {"iccid": "1"}}') as object as never, 'iccid')).toThrow();
  });

  it('reads offsets with and without a colon as the same instant', () => {
    const at = new Date('2025-03-19T16:00:00Z');
    for (const text of ['2025-03-19T18:00:00+0200', '2025-03-19T18:00:00+02:00', '2025-03-19T16:00:00'])
      expect(instantAt({ text }, 'text')).toEqual(at);
    expect(instantOrNullAt({ text: '' }, 'text')).toBeNull();
    expect(() => instantAt({ text: '2025-13-19T18:00:00Z' }, 'text')).toThrow(ProviderResponseInvalid);
  });
});
