import type { WebhookConfig } from '../config/index.js';
import type { AttemptOutcome, DeliveryKind, StoredDeliveryStatus } from './delivery.js';

/**
 * The rules of delivery: retry, block, disable, slow start (spec section 6; D30, D31, D32, D34). The service runs them
 * inside SQL, where a guard and its write are one statement: `outcomes.repository.ts` (an attempt has ended),
 * `endpoint-transitions.repository.ts` (what follows for its endpoint), and the function
 * `claim_many_webhook_deliveries` of migration 1763700000043 (what may be sent). This page says the same as functions,
 * and `test/webhooks/delivery-rules.test.ts` compares each statement with its function over all states.
 */
export type DeliveryRules = Pick<
  WebhookConfig,
  'timeoutMs' | 'retryDelaysMs' | 'blockMs' | 'blocksBeforeDisable' | 'concurrencyPerEndpoint'
>;

/** The table of the document; the defaults of the settings are the same (D36). */
export const DOCUMENT_RULES = {
  timeoutMs: 60_000,
  /** From the end of an attempt to the next one; five retries (D30). */
  retryDelaysMs: [30_000, 60_000, 180_000, 300_000, 900_000],
  blockMs: 60_000,
  blocksBeforeDisable: 5,
} as const satisfies Partial<DeliveryRules>;

/** The third interruption in a row counts as a failed attempt (D30). */
export const UNCOUNTED_INTERRUPTIONS = 2;
/** The window of an endpoint that comes back widens at most once in this time. */
export const SLOW_START_STEP_MS = 1_000;

/** Attempts of a delivery that count, the first included (D30, D36). */
export function maxAttempts(rules: Pick<DeliveryRules, 'retryDelaysMs'>): number {
  return rules.retryDelaysMs.length + 1;
}

export interface DeliveryState {
  readonly kind: DeliveryKind;
  readonly status: StoredDeliveryStatus;
  /** Attempts so far that count among the six. */
  readonly countedAttempts: number;
  /** Interruptions in a row that did not count. */
  readonly interruptions: number;
  /** The endpoint has given up what is as old as this delivery, and the worker has not written it down yet (D32). */
  readonly givenUp: boolean;
}

export interface DeliveryAfterAttempt extends Omit<DeliveryState, 'kind' | 'givenUp'> {
  /** Milliseconds from the end of the attempt to the next; `unchanged`: due as before; null: no attempt follows. */
  readonly nextAttempt: number | 'unchanged' | null;
  /** The attempt was the last that counts and failed: the endpoint is to be blocked (D31). */
  readonly exhausted: boolean;
}

/** A delivery after an attempt that still held its lease has ended (D30). */
export function afterAttempt(
  rules: Pick<DeliveryRules, 'retryDelaysMs'>,
  delivery: DeliveryState,
  outcome: AttemptOutcome,
): DeliveryAfterAttempt {
  const { kind, status, givenUp } = delivery;
  const delivered = outcome === 'delivered';
  const counts = outcome !== 'interrupted' || delivery.interruptions >= UNCOUNTED_INTERRUPTIONS;
  const countedAttempts = delivery.countedAttempts + (counts ? 1 : 0);
  const owed = status === 'pending' && !givenUp;
  const isLast = kind === 'test' || countedAttempts >= maxAttempts(rules);
  const exhausted = owed && counts && !delivered && isLast;
  const ends = delivered || exhausted || !owed;
  return {
    status: delivered ? 'delivered' : exhausted ? 'failed' : owed ? status : 'discarded',
    countedAttempts,
    interruptions: counts ? 0 : delivery.interruptions + 1,
    nextAttempt: ends ? null : counts ? rules.retryDelaysMs[countedAttempts - 1]! : 'unchanged',
    exhausted,
  };
}

export interface EndpointState {
  readonly enabled: boolean;
  readonly deleted: boolean;
  /** A block is running; it ends by itself. */
  readonly blocked: boolean;
  readonly consecutiveBlocks: number;
  /** Attempts in flight while the endpoint starts slowly; null: as many as the setting says. */
  readonly window: number | null;
}

/** Whether anything is sent to the endpoint now: nothing in a block (D31), nothing while disabled (D32). */
export function takesAttempts({ enabled, deleted, blocked }: EndpointState): boolean {
  return enabled && !deleted && !blocked;
}

/** Whether the delivery may be claimed now; what may not keeps its attempts and its due time (D31, D32). */
export function isClaimable(
  endpoint: EndpointState,
  delivery: Pick<DeliveryState, 'status' | 'givenUp'> & { readonly due: boolean; readonly leased: boolean },
): boolean {
  const { status, givenUp, due, leased } = delivery;
  return takesAttempts(endpoint) && status === 'pending' && !givenUp && due && !leased;
}

/** How many deliveries a claim may take when `inFlight` attempts are under way over all workers (D34). */
export function claimLimit(
  rules: Pick<DeliveryRules, 'concurrencyPerEndpoint'>,
  { window }: EndpointState,
  { asked, inFlight }: { readonly asked: number; readonly inFlight: number },
): number {
  const width = Math.min(window ?? Infinity, rules.concurrencyPerEndpoint);
  return Math.max(0, Math.min(asked, width - inFlight));
}

/** A delivery was given up: the endpoint is blocked, and disabled by its last block, unless it is so already (D31). */
export function afterExhausted(
  rules: Pick<DeliveryRules, 'blocksBeforeDisable'>,
  endpoint: EndpointState,
): EndpointState {
  if (!takesAttempts(endpoint)) return endpoint;
  const consecutiveBlocks = endpoint.consecutiveBlocks + 1;
  const disabled = consecutiveBlocks >= rules.blocksBeforeDisable;
  return { ...endpoint, enabled: !disabled, blocked: !disabled, consecutiveBlocks, window: 1 };
}

/** A 2xx has come: the row of blocks ends, and a block that is running does not (D31). */
export function afterDelivered(endpoint: EndpointState): EndpointState {
  return { ...endpoint, consecutiveBlocks: 0 };
}

export interface SlowStartStep {
  readonly delivered: boolean;
  readonly failed: boolean;
  /** One of the failures was a time-out. */
  readonly timedOut: boolean;
  /** The window has widened less than SLOW_START_STEP_MS ago. */
  readonly widenedLately: boolean;
}

/**
 * The window after some attempts: a failure halves one that starts slowly, a 2xx doubles it until it is as wide as the
 * setting (D31, D32). A time-out narrows any to one; when a 2xx came with it, the endpoint does not hang: half (D42).
 */
export function slowStart(
  rules: Pick<DeliveryRules, 'concurrencyPerEndpoint'>,
  { window, blocked }: EndpointState,
  { delivered, failed, timedOut, widenedLately }: SlowStartStep,
): number | null {
  if (blocked) return window;
  if (timedOut && !delivered) return 1;
  if (timedOut) return Math.max(1, Math.floor((window ?? rules.concurrencyPerEndpoint) / 2));
  if (window === null) return null;
  if (failed) return Math.max(1, Math.floor(window / 2));
  if (!delivered || widenedLately) return window;
  return window * 2 < rules.concurrencyPerEndpoint ? window * 2 : null;
}

/** An attempt as its record shows it. */
export interface EndedAttempt {
  readonly endpointId: string;
  readonly kind: DeliveryKind;
  readonly outcome: AttemptOutcome;
  readonly exhausted: boolean;
  /** Since the epoch, with the database's microseconds: which of two answers came first may hang on them. */
  readonly endedAtMs: number;
}

/** What a batch of attempts means for its endpoints; applied in this order it is what each attempt in turn would do. */
export interface EndpointTransitions {
  /** A 2xx ended before any delivery was given up. */
  readonly resetFirst: readonly string[];
  /** A delivery was given up: the first one may block, those after it meet a blocked endpoint (D31). */
  readonly exhausted: readonly string[];
  /** A 2xx ended after a delivery was given up. */
  readonly resetLast: readonly string[];
}

/** Tests have no effect on the count; ids come out sorted, for the lock order (D31, D40). */
export function transitionsOf(attempts: readonly EndedAttempt[]): EndpointTransitions {
  const resetFirst = new Set<string>();
  const exhausted = new Set<string>();
  const resetLast = new Set<string>();
  const inOrder = attempts
    .filter(({ kind }) => kind !== 'test')
    .toSorted((a, b) => a.endedAtMs - b.endedAtMs);
  for (const attempt of inOrder) {
    const { endpointId } = attempt;
    if (attempt.exhausted) exhausted.add(endpointId);
    else if (attempt.outcome === 'delivered')
      (exhausted.has(endpointId) ? resetLast : resetFirst).add(endpointId);
  }
  return {
    resetFirst: [...resetFirst].sort(),
    exhausted: [...exhausted].sort(),
    resetLast: [...resetLast].sort(),
  };
}
