import type { WebhookConfig } from '../config/index.js';
import type { AttemptOutcome, DeliveryKind, StoredDeliveryStatus } from './delivery.js';

/**
 * The rules of delivery: retry, block, disable, slow start (spec section 6; D30, D31, D32, D34, D42), as pure functions.
 * `worker/attempt-recorder.ts` calls those about outcomes, and the repositories write what they return.
 * `worker/owned-deliveries.ts` asks `freeSlots` before it claims; the claim itself, in `worker/deliveries.repository.ts`,
 * leaves out endpoints for which `takesAttempts` is false.
 */
export type DeliveryRules = Pick<
  WebhookConfig,
  'timeoutMs' | 'retryDelaysMs' | 'blockMs' | 'blocksBeforeDisable' | 'concurrencyPerEndpoint'
>;

/** So many interruptions in a row do not count; the next one counts as a failed attempt (D30). */
export const UNCOUNTED_INTERRUPTIONS = 2;
/** A narrowed window has stayed the same for this long before it widens. */
export const SLOW_START_STEP_MS = 1_000;

/** Attempts of a delivery that count, the first included (D30, D36). */
export function maxAttempts(rules: Pick<DeliveryRules, 'retryDelaysMs'>): number {
  return rules.retryDelaysMs.length + 1;
}

/** A delivery as its owner claimed it. */
export interface DeliveryState {
  readonly kind: DeliveryKind;
  /** Attempts so far that count among the six. */
  readonly countedAttempts: number;
  /** Interruptions in a row that did not count. */
  readonly interruptions: number;
}

/** A delivery after an attempt. */
export interface DeliveryAfterAttempt extends Omit<DeliveryState, 'kind'> {
  readonly status: Exclude<StoredDeliveryStatus, 'discarding'>;
  /** From the end of the attempt to the next one. Null: due as before while pending, and never again afterwards. */
  readonly retryInMs: number | null;
  /** The last attempt that counts has failed: the endpoint is to be blocked (D31). Never of a test. */
  readonly exhausted: boolean;
}

/**
 * A delivery after an attempt of its endpoint's owner has ended (D30): delivered, due again after the delay of the
 * document's table (`WEBHOOK_RETRY_DELAYS_MS`), or failed after the sixth attempt. A test has one attempt. Of an owner
 * that crashed, the next owner of the endpoint records the attempt as `interrupted`.
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

/** The same for a delivery that was discarded while the attempt was under way: a 2xx still counts (D32). */
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

/** What decides whether an endpoint is sent to. */
export interface EndpointState {
  readonly enabled: boolean;
  readonly deleted: boolean;
  /** A block is running; it ends by itself. */
  readonly blocked: boolean;
  readonly consecutiveBlocks: number;
}

/** Whether anything is sent to the endpoint now: nothing in a block (D31), nothing while disabled (D32). */
export function takesAttempts({ enabled, deleted, blocked }: EndpointState): boolean {
  return enabled && !deleted && !blocked;
}

/**
 * A delivery was exhausted. Four in a row block the endpoint for a time each, and the fifth disables it; one that is
 * blocked, disabled or deleted already stays as it is (D31).
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

/** A 2xx: the count of blocks begins again at 0. A block that is running does not end (D31). */
export function afterDelivered<Endpoint extends EndpointState>(endpoint: Endpoint): Endpoint {
  return { ...endpoint, consecutiveBlocks: 0 };
}

/** How one attempt of an endpoint ended. */
export interface EndedAttempt {
  readonly kind: DeliveryKind;
  readonly outcome: AttemptOutcome;
  readonly exhausted: boolean;
}

/** The endpoint after attempts, in the order in which they ended. Tests have no effect (`webhook.test`). */
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

/** How many attempts the endpoint's owner may have in flight. */
export interface SendWindow {
  /** Null: as many as the setting says. */
  readonly width: number | null;
  /** When it last became another, in monotonic milliseconds. */
  readonly changedAtMs: number;
}

export const FULL_WINDOW: SendWindow = { width: null, changedAtMs: -Infinity };
/** After a block, and after the endpoint was enabled again: what waits is paced (D31, D32). */
export const SLOW_START: SendWindow = { width: 1, changedAtMs: -Infinity };

/** Attempts that may begin while `inFlight` are under way (D34). */
export function freeSlots(
  { concurrencyPerEndpoint }: Pick<DeliveryRules, 'concurrencyPerEndpoint'>,
  { width }: SendWindow,
  inFlight: number,
): number {
  return Math.max(0, Math.min(width ?? Infinity, concurrencyPerEndpoint) - inFlight);
}

/** What some attempts that ended together showed. An interruption shows nothing. */
export interface SeenAnswers {
  readonly delivered: boolean;
  readonly failed: boolean;
  /** One of the failures was a time-out. */
  readonly timedOut: boolean;
}

/**
 * The window after some attempts. A time-out narrows any window to one, or to half of its width if a 2xx came with it
 * (D42). While it is narrow, a failure halves it, and else a 2xx doubles it, until it is as wide as the setting
 * (D31, D32).
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
