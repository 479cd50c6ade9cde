import { randomBytes, randomInt } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { MAGIC_PACKAGES } from '../../catalog/index.js';
import { Batcher } from '../../infra/batcher.js';
import {
  type EsimControlResult,
  type EsimProvider,
  type FailureCode,
  type Placement,
  type ProviderCancelRequest,
  type ProviderCancelState,
  type ProviderCancelStatus,
  type ProviderFailure,
  type ProviderOrderParts,
  type ProviderOrderRequest,
  type ProviderOrderState,
  ProviderOutcomeUnknown,
  type ProviderProfile,
  type ProviderTopupRequest,
  type ProviderTopupState,
  type RepeatPolicy,
} from '../esim-provider.js';
import {
  type NewSandboxOrder,
  type SandboxOrder,
  type SandboxTopup,
  SandboxProviderRepository,
} from './sandbox-provider.repository.js';

/** Delay until `pkg_test_slow` is ready (D26). */
const SLOW_MS = 20_000;
/** `pkg_test_timeout` must be issued within 10 s: one lost response and one lookup must fit. */
const TIMEOUT_MS = 2_500;
const PARTIAL_SHARE = 0.6;

const BATCHES = { maxItems: 128, gather: 'turn', concurrency: 2, aloneMs: 10 } as const;

const REJECTIONS: Readonly<Record<string, FailureCode>> = {
  [MAGIC_PACKAGES.outOfStock]: 'package_unavailable',
  [MAGIC_PACKAGES.insufficientBalance]: 'insufficient_balance',
};

const REASONS: Readonly<Partial<Record<FailureCode, string>>> = {
  package_unavailable: 'The package is out of stock.',
  insufficient_balance: 'The wallet does not cover the price.',
};

const OWN: RepeatPolicy = { repeat: 'same_request', source: 'its own table: one row per reference' };

/** The built-in provider of Sandbox (D26): real states and faults, chosen by magic packages, and no charge. */
@Injectable()
export class SandboxProvider implements EsimProvider {
  readonly name = 'sandbox';
  readonly timeoutMs = TIMEOUT_MS;
  /** The simulator never loses a committed purchase. */
  readonly readLagMs = 0;
  readonly repeats = { order: OWN, topup: OWN, cancel: OWN };

  /** Batches purchases that are placed at about the same time; each call still gets its own result. */
  private readonly placements: Batcher<NewSandboxOrder, boolean>;
  private readonly topups: Batcher<SandboxTopup, boolean>;

  constructor(private readonly repository: SandboxProviderRepository) {
    this.placements = new Batcher({ ...BATCHES, handle: (orders) => repository.insert(orders) });
    this.topups = new Batcher({ ...BATCHES, handle: (topups) => repository.insertTopups(topups) });
  }

  async placeOrder(
    request: ProviderOrderRequest,
    _placement: Placement,
    signal: AbortSignal,
  ): Promise<ProviderOrderState> {
    const order = decide(request);
    const isNew = await this.placements.add(order);
    if (!isNew) return (await this.findOrder(request))!;
    // Provisioned and committed, but without a response: the case that fixed references exist for (D19).
    if (request.packageId === MAGIC_PACKAGES.timeout) await silence(signal);
    return toState({ ...order, readyInMs: order.delayMs });
  }

  async findOrder({
    reference,
  }: Pick<ProviderOrderRequest, 'reference'>): Promise<ProviderOrderState | null> {
    const order = await this.repository.find(reference);
    return order && toState(order);
  }

  async cancelOrder({ reference }: ProviderCancelRequest): Promise<ProviderCancelState> {
    await this.repository.cancel(reference);
    return { state: 'canceled' };
  }

  async findParts({ reference }: Pick<ProviderOrderRequest, 'reference'>): Promise<ProviderOrderParts> {
    const order = await this.repository.find(reference);
    const state = order && toState(order);
    return {
      profiles: state?.state === 'provisioned' && !order!.canceled ? state.profiles : [],
      running: state?.state === 'in_progress' ? order!.quantity : 0,
      unusable: 0,
      failure: failureOf(state),
    };
  }

  /** A sandbox eSIM's state lives in our own database, which the caller changes. */
  controlEsim(): Promise<EsimControlResult> {
    return Promise.resolve({ state: 'done' });
  }

  /** The sandbox has no devices, so its eSIMs stay unused until they are canceled. */
  async findCancelStatuses({
    reference,
    esims,
  }: ProviderCancelRequest): Promise<readonly ProviderCancelStatus[]> {
    const order = await this.repository.find(reference);
    const cancelStatus = order === null ? 'unknown' : order.canceled ? 'canceled' : 'unused';
    return esims.map(({ providerEsimId }) => ({ providerEsimId, cancelStatus }));
  }

  async placeTopup(request: ProviderTopupRequest): Promise<ProviderTopupState> {
    const { reference, packageId, esim } = request;
    const topup = {
      reference,
      packageId,
      providerEsimId: esim.providerEsimId,
      rejection: packageId === MAGIC_PACKAGES.topupFail ? ('package_unavailable' as const) : null,
    };
    const isNew = await this.topups.add(topup);
    return isNew ? toTopupState(topup) : (await this.findTopup(request))!;
  }

  async findTopup({
    reference,
  }: Pick<ProviderTopupRequest, 'reference'>): Promise<ProviderTopupState | null> {
    const topup = await this.repository.findTopup(reference);
    return topup && toTopupState(topup);
  }
}

function decide({ reference, packageId, quantity }: ProviderOrderRequest): NewSandboxOrder {
  const rejection = REJECTIONS[packageId] ?? null;
  const provisioned = packageId === MAGIC_PACKAGES.partial ? Math.ceil(PARTIAL_SHARE * quantity) : quantity;
  return {
    reference,
    packageId,
    quantity,
    rejection,
    profiles: rejection === null ? Array.from({ length: provisioned }, mintProfile) : [],
    delayMs: packageId === MAGIC_PACKAGES.slow ? SLOW_MS : 0,
  };
}

function toState(order: Omit<SandboxOrder, 'canceled'>): ProviderOrderState {
  if (order.rejection !== null) return { state: 'rejected', failure: failure(order.rejection) };
  if (order.readyInMs > 0) return { state: 'in_progress', checkAfterMs: order.readyInMs };
  const shortfall = order.profiles.length < order.quantity ? failure('package_unavailable') : null;
  return { state: 'provisioned', profiles: order.profiles, shortfall };
}

function toTopupState({ rejection, packageId }: SandboxTopup): ProviderTopupState {
  if (rejection !== null) return { state: 'rejected', failure: failure(rejection) };
  // The simulator only records purchases; we compute the eSIM's totals.
  const queues = packageId === MAGIC_PACKAGES.topupQueued;
  return { state: 'completed', totalBytes: null, expiresAt: null, queues };
}

function failureOf(state: ProviderOrderState | null): ProviderFailure | null {
  if (state?.state === 'rejected') return state.failure;
  return state?.state === 'provisioned' ? state.shortfall : null;
}

function failure(code: FailureCode): { code: FailureCode; reason: string } {
  return { code, reason: REASONS[code] ?? 'The wholesaler rejected the request.' };
}

function silence(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(new ProviderOutcomeUnknown()), { once: true });
  });
}

/** `89` (telecom) plus a country and issuer part that no operator uses. */
const ICCID_PREFIX = '8900099';
const ICCID_DIGITS = 19;
const SMDP_ADDRESS = 'smdp.sandbox.example.com';

/**
 * Creates a profile that looks real and installs nowhere (D26): a Luhn-valid ICCID of 19 digits with prefix 89 (D23).
 */
function mintProfile(): ProviderProfile {
  let digits = ICCID_PREFIX;
  while (digits.length < ICCID_DIGITS - 1) digits += String(randomInt(10));
  return {
    providerEsimId: `sim_${randomBytes(12).toString('hex')}`,
    iccid: digits + luhnDigit(digits),
    smdpAddress: SMDP_ADDRESS,
    matchingId: randomBytes(12).toString('hex').toUpperCase(),
    confirmationCode: null,
    activationCode: null,
    pin: null,
    puk: null,
    apn: 'sandbox.internet',
    msisdn: null,
    pooled: true,
    installBy: null,
  };
}

/** The check digit that makes `digits` plus this digit Luhn-valid. */
function luhnDigit(digits: string): string {
  let sum = 0;
  for (let i = 0; i < digits.length; i++) {
    const digit = Number(digits[digits.length - 1 - i]);
    const doubled = digit * 2;
    sum += i % 2 === 0 ? (doubled > 9 ? doubled - 9 : doubled) : digit;
  }
  return String((10 - (sum % 10)) % 10);
}
