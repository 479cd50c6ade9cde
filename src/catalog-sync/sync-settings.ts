import { createHash } from 'node:crypto';
import type { SalesTerms } from './live-packages.js';

/** The settings that a worker would make the live catalogue with, and for how long it has had them. */
export interface SyncSettings {
  readonly digest: string;
  /** Milliseconds since this worker began. */
  readonly ageMs: number;
  /** How long it may be silent before another worker takes its synchronisation over, in milliseconds. */
  readonly leaseMs: number;
}

/** A synchronisation as the worker holds it that took it up. */
export interface RunningSync {
  readonly id: string;
  /** How often it was taken up: only who did so last may write. */
  readonly attempt: number;
  readonly leaseMs: number;
}

/** Equal for the same margin, rules and connected providers, whatever process they are of. */
export function digestOf({ marginBps, rules }: SalesTerms, liveProviders: readonly string[]): string {
  const settings = JSON.stringify([marginBps, rules, [...liveProviders].sort()]);
  return createHash('sha256').update(settings).digest('base64url').slice(0, 22);
}
