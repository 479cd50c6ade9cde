import type { EsimEntity } from '../esims/index.js';

/** The eSIMs that an earlier, partial cancellation has not taken back. */
export function uncanceled(esims: readonly EsimEntity[]): readonly EsimEntity[] {
  return esims.filter((esim) => esim.status !== 'canceled');
}
