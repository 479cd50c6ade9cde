import { createHash } from 'node:crypto';
import type { SalesTerms } from './live-packages.js';

/** The settings that a worker would make the live catalogue with, and for how long it has had them. */
export interface SyncSettings {
  readonly digest: string;
  /** Milliseconds since this worker began. */
  readonly ageMs: number;
}

/** Equal for the same margin, rules and connected wholesalers, whatever process they are of. */
export function digestOf({ marginBps, rules }: SalesTerms, wholesalers: readonly string[]): string {
  const settings = JSON.stringify([marginBps, rules, [...wholesalers].sort()]);
  return createHash('sha256').update(settings).digest('base64url').slice(0, 22);
}
