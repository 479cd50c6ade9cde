import type { WebhookConfig } from '../config/index.js';
import type { AttemptOutcome, DeliveryKind, StoredDeliveryStatus } from './delivery.js';

/**
 * The rules of delivery: retry, block, disable, slow start (spec section 6; D30, D31, D32, D34, D42), as pure
 * functions. `worker/attempt-recorder.ts` calls the rules about outcomes, and the repositories store their results.
 * `worker/owned-deliveries.ts` calls `freeSlots` before it claims. The claim in `worker/deliveries.repository.ts` skips
 * endpoints for which `takesAttempts` is false.
 */
export type DeliveryRules = Pick<
  WebhookConfig,
  'timeoutMs' | 'retryDelaysMs' | 'blockMs' | 'blocksBeforeDisable' | 'concurrencyPerEndpoint'
>;

/** Maximum number of consecutive interruptions that do not count; the next one counts as a failed attempt (D30). */
export const UNCOUNTED_INTERRUPTIONS = 2;
/** Minimum time between two changes of a narrowed window before it widens. */
export const SLOW_START_STEP_MS = 1_000;

/** Maximum number of counted attempts per delivery, including the first (D30, D36). */
export function maxAttempts(rules: Pick<DeliveryRules, 'retryDelaysMs'>): number {
  return rules.retryDelaysMs.length + 1;
}

/** A delivery's state when its owner claimed it. */
export interface DeliveryState {
  readonly kind: DeliveryKind;
  /** Attempts so far that count toward the six. */
  readonly countedAttempts: number;
  /** Consecutive interruptions that did not count. */
  readonly interruptions: number;
}

/** A delivery's state after an attempt. */
export interface DeliveryAfterAttempt extends Omit<DeliveryState, 'kind'> {
  readonly status: Exclude<StoredDeliveryStatus, 'discarding'>;
  /** Delay from the end of the attempt to the next. Null if there is none, or, while pending, if the due time stays. */
  readonly retryInMs: number | null;
  /** The last counted attempt has failed, so the endpoint must be blocked (D31). Never set for a test. */
  readonly exhausted: boolean;
}

/**
 * A delivery's state after an attempt has ended (D30): delivered, due again after the delay of the document's table
 * (`WEBHOOK_RETRY_DELAYS_MS`), or failed after the sixth attempt. A test has one attempt. If the owner crashed, the
 * endpoint's next owner records the attempt as `interrupted`.
 */
export function afterAttempt(
  rules: Pick<DeliveryRules, 'retryDelaysMs'>,
  { kind, countedAttempts: before, interruptions }: DeliveryState,
  outcome: AttemptOutcome,
): DeliveryAfterAttempt {
  const counts = outcome !== 'interrupted' || interruptions >= UNCOUNTED_INTERRUPTIONS;
  const countedAttempts = before + (counts ? 1 : 0);
  const after = { countedAttempts, interruptions: counts ? 0 : interruptions + 1 };
  if (outcome === 'delivered') return { ...after, status: 'delivered', retryInMs: null, exhausted: false };
  if (!counts) return { ...after, status: 'pending', retryInMs: null, exhausted: false };
  const isLast = kind === 'test' || countedAttempts >= maxAttempts(rules);
  if (isLast) return { ...after, status: 'failed', retryInMs: null, exhausted: kind !== 'test' };
  const retryInMs = rules.retryDelaysMs[countedAttempts - 1]!;
  return { ...after, status: 'pending', retryInMs, exhausted: false };
}

/** Same for a delivery that was discarded during the attempt: a 2xx still counts (D32). */
export function afterAttemptOfDiscarded(
  rules: Pick<DeliveryRules, 'retryDelaysMs'>,
  delivery: DeliveryState,
  outcome: AttemptOutcome,
): DeliveryAfterAttempt {
  const after = afterAttempt(rules, delivery, outcome);
  return after.status === 'delivered'
    ? after
    : { ...after, status: 'discarded', retryInMs: null, exhausted: false };
}

/** The state that decides whether an endpoint receives attempts. */
export interface EndpointState {
  readonly enabled: boolean;
  readonly deleted: boolean;
  /** A block is active; it ends by itself. */
  readonly blocked: boolean;
  readonly consecutiveBlocks: number;
}

/** Whether the endpoint receives attempts now: none during a block (D31) or while disabled (D32). */
export function takesAttempts({ enabled, deleted, blocked }: EndpointState): boolean {
  return enabled && !deleted && !blocked;
}

/**
 * The endpoint's state after a delivery was exhausted. Four in a row each block the endpoint for a time, and the fifth
 * disables it. An endpoint that is already blocked, disabled or deleted does not change (D31).
 */
export function afterExhausted<Endpoint extends EndpointState>(
  rules: Pick<DeliveryRules, 'blocksBeforeDisable'>,
  endpoint: Endpoint,
): Endpoint {
  if (!takesAttempts(endpoint)) return endpoint;
  const consecutiveBlocks = endpoint.consecutiveBlocks + 1;
  const disabled = consecutiveBlocks >= rules.blocksBeforeDisable;
  return { ...endpoint, enabled: !disabled, blocked: !disabled, consecutiveBlocks };
}

/** The endpoint's state after a 2xx: the block count restarts at 0. An active block does not end (D31). */
export function afterDelivered<Endpoint extends EndpointState>(endpoint: Endpoint): Endpoint {
  return { ...endpoint, consecutiveBlocks: 0 };
}

/** Result of one of an endpoint's attempts. */
export interface EndedAttempt {
  readonly kind: DeliveryKind;
  readonly outcome: AttemptOutcome;
  readonly exhausted: boolean;
}

/**
 * The endpoint's state after attempts, applied in the order in which they ended. Tests have no effect (`webhook.test`).
 */
export function afterAttempts<Endpoint extends EndpointState>(
  rules: Pick<DeliveryRules, 'blocksBeforeDisable'>,
  endpoint: Endpoint,
  attempts: readonly EndedAttempt[],
): Endpoint {
  return attempts
    .filter(({ kind }) => kind !== 'test')
    .reduce((state, { outcome, exhausted }) => {
      if (exhausted) return afterExhausted(rules, state);
      return outcome === 'delivered' ? afterDelivered(state) : state;
    }, endpoint);
}

/** Limit on an endpoint's attempts in flight. */
export interface SendWindow {
  /** Null: the configured limit applies. */
  readonly width: number | null;
  /** Time of the last change, in monotonic milliseconds. */
  readonly changedAtMs: number;
}

export const FULL_WINDOW: SendWindow = { width: null, changedAtMs: -Infinity };
/** Window after a block or after the endpoint was enabled: its backlog is paced (D31, D32). */
export const SLOW_START: SendWindow = { width: 1, changedAtMs: -Infinity };

/** Number of attempts that may begin while `inFlight` are in flight (D34). */
export function freeSlots(
  { concurrencyPerEndpoint }: Pick<DeliveryRules, 'concurrencyPerEndpoint'>,
  { width }: SendWindow,
  inFlight: number,
): number {
  return Math.max(0, Math.min(width ?? Infinity, concurrencyPerEndpoint) - inFlight);
}

/** Summary of attempts that ended together. An interruption shows nothing. */
export interface SeenAnswers {
  readonly delivered: boolean;
  readonly failed: boolean;
  /** At least one failure was a timeout. */
  readonly timedOut: boolean;
}

/**
 * The window after attempts. A timeout narrows any window to one, or to half of its width if a 2xx arrived with it
 * (D42). In a narrowed window a failure halves the width; otherwise a 2xx doubles it, until it reaches the configured
 * limit (D31, D32).
 */
export function windowAfter(
  { concurrencyPerEndpoint }: Pick<DeliveryRules, 'concurrencyPerEndpoint'>,
  window: SendWindow,
  { delivered, failed, timedOut }: SeenAnswers,
  nowMs: number,
): SendWindow {
  const half = Math.max(1, Math.floor((window.width ?? concurrencyPerEndpoint) / 2));
  if (timedOut) return { width: delivered ? half : 1, changedAtMs: nowMs };
  if (window.width === null) return window;
  if (failed) return { width: half, changedAtMs: nowMs };
  if (!delivered || nowMs - window.changedAtMs < SLOW_START_STEP_MS) return window;
  const twice = window.width * 2;
  return { width: twice < concurrencyPerEndpoint ? twice : null, changedAtMs: nowMs };
}
