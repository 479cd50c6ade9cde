import type { EsimControl } from './esim-provider.js';

/** By provider name, because only workers are connected to providers. A test compares it with `controlEsim`. */
const OFFERED: Readonly<Record<string, readonly EsimControl['action'][]>> = {
  sandbox: ['suspend', 'resume', 'revoke'],
  esim_access: ['suspend', 'resume', 'revoke'],
};

/** The changes of one eSIM that a provider carries out. */
export function actionsOfferedBy(provider: string): readonly EsimControl['action'][] {
  return OFFERED[provider] ?? [];
}
