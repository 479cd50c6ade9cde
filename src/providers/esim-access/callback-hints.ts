import type { ProviderHint } from '../esim-provider.js';

const MAX_REFERENCE_LENGTH = 50;
const ABOUT_ESIMS: readonly unknown[] = ['ESIM_STATUS', 'SMDP_EVENT', 'DATA_USAGE', 'VALIDITY_USAGE'];

/**
 * What an unsigned callback is about. It may be late, doubled, out of order or a stranger's, so nothing but the name
 * of the thing is taken from it. Never throws.
 */
export function hintsOf(body: unknown): readonly ProviderHint[] {
  try {
    return read(body);
  } catch {
    return [];
  }
}

function read(body: unknown): readonly ProviderHint[] {
  const { notifyType, content } = body as { notifyType?: unknown; content?: Record<string, unknown> | null };
  if (notifyType === 'CHECK_HEALTH') return [{ about: 'health_check' }];
  if (notifyType === 'ORDER_STATUS') {
    const reference = content?.['transactionId'];
    return isName(reference, /^[A-Za-z0-9_-]+$/) ? [{ about: 'order', reference }] : [];
  }
  if (!ABOUT_ESIMS.includes(notifyType)) return [];
  const providerEsimId = content?.['esimTranNo'];
  return isName(providerEsimId, /^[A-Za-z0-9]+$/) ? [{ about: 'esim', providerEsimId }] : [];
}

function isName(value: unknown, pattern: RegExp): value is string {
  return typeof value === 'string' && value.length <= MAX_REFERENCE_LENGTH && pattern.test(value);
}
