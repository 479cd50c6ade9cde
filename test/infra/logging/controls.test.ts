import { expect, it } from 'vitest';
import { createLogger } from '../../../src/infra/logging.js';

const CONTROLS = [
  '\u0000',
  '\u001b[31m',
  '\n',
  '\u007f',
  '\u009b31m',
  '\u202e',
  '\u2066',
  '\u2028',
  '\ufeff',
  '\u061c',
];

it('escapes control characters that a terminal would obey in text from strangers', () => {
  const lines: string[] = [];
  const logger = createLogger('info', 'test', { write: (line) => void lines.push(line) });
  const text = `a${CONTROLS.join('b')}c‍é😀`;
  logger.info({ path: `/${text}`, err: new Error(text), nested: { [text]: text } }, text);
  expect(lines).toHaveLength(1);
  expect(lines[0]).toMatch(
    /^[^\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ufeff]+\n$/,
  );
  expect(JSON.parse(lines[0]!)).toMatchObject({ path: `/${text}`, msg: text, err: { message: text } });
  expect(lines[0]).toContain('c‍é😀');
});
