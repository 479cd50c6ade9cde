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
    ['undefined', undefined],
    ['null', null],
    ['empty', ''],
    ['of another version', `01-${TRACE}-${SPAN}-01`],
    ['in capital letters', `00-${TRACE.toUpperCase()}-${SPAN}-01`],
    ['without a trace id', `00-${'0'.repeat(32)}-${SPAN}-01`],
    ['without a span id', `00-${TRACE}-${'0'.repeat(16)}-01`],
    ['followed by something', `00-${TRACE}-${SPAN}-01-more`],
    ['doubled', `00-${TRACE}-${SPAN}-01, 00-${TRACE}-${SPAN}-01`],
  ])('is ignored when it is %s', (_name, text) => {
    expect(parseTraceparent(text)).toBeNull();
  });
});
