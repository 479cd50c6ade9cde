import type { WebhookConfig } from '../config/index.js';
import type { AttemptOutcome, DeliveryKind, StoredDeliveryStatus } from './delivery.js';

/**
 * The rules of delivery: retry, block, disable, slow start (spec section 6; D30, D31, D32, D34, D42). They are pure
 * functions over what an endpoint's owner knows. `worker/delivery-worker.ts` calls the ones about sending, and
 * `worker/attempt-recorder.ts` the ones about outcomes; the repositories only write what these return.
 */
export type DeliveryRules = Pick<
  WebhookConfig,
  'timeoutMs' | 'retryDelaysMs' | 'blockMs' | 'blocksBeforeDisable' | 'concurrencyPerEndpoint'
>;

/** The third interruption in a row counts as a failed attempt (D30). */
export const UNCOUNTED_INTERRUPTIONS = 2;
/** A window that starts slowly widens at most once in this time. */
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
  /** From the end of the attempt to the next one; null: due as before, or never again if the delivery has ended. */
  readonly retryInMs: number | null;
  /** The last attempt that counts has failed: the endpoint is to be blocked (D31). */
  readonly exhausted: boolean;
}

/**
 * A delivery after an attempt of its endpoint's owner has ended (D30): delivered, due again after the delay of the
 * document's table, or failed after the sixth attempt. A test has one attempt.
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
  if (isLast) return { ...after, status: 'failed', retryInMs: null, exhausted: true };
  const retryInMs = rules.retryDelaysMs[countedAttempts - 1]!;
  return { ...after, status: 'pending', retryInMs, exhausted: false };
}

/** The same for a delivery that was given up while the attempt was under way: a 2xx still counts (D32). */
export function afterLastAttempt(
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

/** A delivery was exhausted: the endpoint is blocked, and disabled by its fifth block, unless it is so already (D31). */
export function afterExhausted<Endpoint extends EndpointState>(
  rules: Pick<DeliveryRules, 'blocksBeforeDisable'>,
  endpoint: Endpoint,
): Endpoint {
  if (!takesAttempts(endpoint)) return endpoint;
  const consecutiveBlocks = endpoint.consecutiveBlocks + 1;
  const disabled = consecutiveBlocks >= rules.blocksBeforeDisable;
  return { ...endpoint, enabled: !disabled, blocked: !disabled, consecutiveBlocks };
}

/** A 2xx: the row of blocks ends. A block that is running does not (D31). */
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
  /** When it last widened, in monotonic milliseconds. */
  readonly widenedAtMs: number;
}

export const FULL_WINDOW: SendWindow = { width: null, widenedAtMs: -Infinity };
/** After a block, and after the switch: what waits is paced (D31, D32). */
export const SLOW_START: SendWindow = { width: 1, widenedAtMs: -Infinity };

/** Attempts that may begin while `inFlight` are under way (D34). */
export function freeSlots(
  { concurrencyPerEndpoint }: Pick<DeliveryRules, 'concurrencyPerEndpoint'>,
  { width }: SendWindow,
  inFlight: number,
): number {
  return Math.max(0, Math.min(width ?? Infinity, concurrencyPerEndpoint) - inFlight);
}

/** What some attempts that ended together showed. */
export interface SeenAnswers {
  readonly delivered: boolean;
  readonly failed: boolean;
  /** One of the failures was a time-out. */
  readonly timedOut: boolean;
}

/**
 * The window after some attempts. While it starts slowly, a 2xx doubles it and a failure halves it, until it is as wide
 * as the setting (D31, D32). A time-out narrows any window to one, or to half if a 2xx came with it (D42).
 */
export function windowAfter(
  { concurrencyPerEndpoint }: Pick<DeliveryRules, 'concurrencyPerEndpoint'>,
  window: SendWindow,
  { delivered, failed, timedOut }: SeenAnswers,
  nowMs: number,
): SendWindow {
  const half = Math.max(1, Math.floor((window.width ?? concurrencyPerEndpoint) / 2));
  if (timedOut) return { width: delivered ? half : 1, widenedAtMs: nowMs };
  if (window.width === null) return window;
  if (failed) return { width: half, widenedAtMs: nowMs };
  if (!delivered || nowMs - window.widenedAtMs < SLOW_START_STEP_MS) return window;
  const twice = window.width * 2;
  return { width: twice < concurrencyPerEndpoint ? twice : null, widenedAtMs: nowMs };
}
