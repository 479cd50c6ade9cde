import { describe, expect, it } from 'vitest';
import { formatTraceparent, parseTraceparent } from '../../../src/infra/tracing/index.js';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const SPAN = 'b7ad6b7169203331';

describe('a traceparent', () => {
  it.each(['00', '01', '03'])('is parsed and formatted with flags %s', (flags) => {
    const context = parseTraceparent(`00-${TRACE}-${SPAN}-${flags}`);
    expect(context).toEqual({ traceId: TRACE, spanId: SPAN, sampled: flags !== '00' });
    expect(parseTraceparent(formatTraceparent(context!))).toEqual(context);
  });

  it.each([
    ['nothing', undefined],
    ['null', null],
    ['an empty one', ''],
    ['another version', `01-${TRACE}-${SPAN}-01`],
    ['capital letters', `00-${TRACE.toUpperCase()}-${SPAN}-01`],
    ['a trace of zeros', `00-${'0'.repeat(32)}-${SPAN}-01`],
    ['a span of zeros', `00-${TRACE}-${'0'.repeat(16)}-01`],
    ['something behind it', `00-${TRACE}-${SPAN}-01-more`],
    ['two of them', `00-${TRACE}-${SPAN}-01, 00-${TRACE}-${SPAN}-01`],
  ])('is ignored when it is %s', (_name, text) => {
    expect(parseTraceparent(text)).toBeNull();
  });
});
