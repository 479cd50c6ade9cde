import { Injectable } from '@nestjs/common';
import { Clock } from '../common/clock.js';
import type { Mode } from '../common/mode.js';
import { SecretBox } from '../infra/crypto/index.js';
import { CallerSlots } from '../infra/http/index.js';
import {
  asHex,
  matches,
  mistakeOfComputation,
  mistakeOfReceipt,
  parseSignature,
  type Signature,
} from './signature-mistakes.js';
import type { WebhookEndpointEntity } from './webhook-endpoint.entity.js';
import { WebhookEndpointsRepository } from './webhook-endpoints.repository.js';

/** A signature's fault as one word. `valid` means none, `stale` means only its age. */
export const DIAGNOSES = [
  'valid',
  'stale',
  'header_missing',
  'header_malformed',
  'signature_changed',
  'clock_off',
  'old_secret',
  'other_endpoint',
  'other_mode',
  'wrong_secret',
  'timestamp_missing',
  'whitespace_changed',
  'reserialized_json',
  'wrong_charset',
  'secret_without_prefix',
  'secret_decoded',
  'unknown',
] as const;
export type DiagnosisCode = (typeof DIAGNOSES)[number];

export interface Diagnosis {
  readonly code: DiagnosisCode;
  /**
   * For `clock_off` and `stale`: seconds by which `t` is behind the receipt, or behind our time if the receipt is
   * unknown. Negative: ahead.
   */
  readonly secondsOff: number | null;
}

export interface ReceivedCall {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** Time of receipt by the receiver's own clock; null when unknown. */
  readonly receivedAt: Date | null;
  /** Value that the receiver's code computed instead of `v1`; null when unknown. */
  readonly computed: string | null;
}

/** Each diagnosis hashes the body up to a hundred times. */
const DIAGNOSES_AT_A_TIME = { what: 'signature diagnoses', perCaller: 1, most: 4, waitMs: 2_000 };
const TOLERANCE_SECONDS = 300;
const HEADER = 'x-service-signature';

/**
 * Finds out why a receiver rejects a signature, by trying the mistakes that receivers make (spec section 6, D29). It
 * uses the secrets of the partner's own endpoints and returns one word, never a secret or a signature.
 */
@Injectable()
export class SignatureDoctor {
  private readonly slots = new CallerSlots(DIAGNOSES_AT_A_TIME);

  constructor(
    private readonly endpoints: WebhookEndpointsRepository,
    private readonly secrets: SecretBox,
    private readonly clock: Clock,
  ) {}

  /**
   * Runs one diagnosis at a time per partner (D43).
   * @param modes modes whose endpoints the caller may see
   * @throws AppError `rate_limited` if the partner's own diagnoses take too long, `service_unavailable` if others do
   */
  diagnose(endpoint: WebhookEndpointEntity, call: ReceivedCall, modes: readonly Mode[]): Promise<Diagnosis> {
    return this.slots.run(endpoint.partnerId, () => this.diagnoseNow(endpoint, call, modes));
  }

  private async diagnoseNow(
    endpoint: WebhookEndpointEntity,
    call: ReceivedCall,
    modes: readonly Mode[],
  ): Promise<Diagnosis> {
    const header = Object.entries(call.headers).find(([name]) => name.toLowerCase() === HEADER)?.[1];
    if (header === undefined || header.trim() === '') return found('header_missing');
    const signature = parseSignature(header);
    if (!signature) return found('header_malformed');
    const current = this.secrets.open(endpoint.secret, endpoint.id);
    if (matches(signature, current, call.body))
      return this.ofRightCall(endpoint, signature, current, call, modes);
    return found(
      this.previousSecret(endpoint, signature, call.body) ??
        mistakeOfReceipt(signature, current, call.body) ??
        (await this.otherEndpoint(endpoint, signature, call.body, modes)) ??
        'unknown',
    );
  }

  /** Header and body match what we sent. The fault lies in the receiver's clock or computation, or there is none. */
  private async ofRightCall(
    endpoint: WebhookEndpointEntity,
    signature: Signature,
    current: string,
    { body, computed, receivedAt }: ReceivedCall,
    modes: readonly Mode[],
  ): Promise<Diagnosis> {
    if (computed === null || signature.values.includes(computed.trim()))
      return this.timely(signature, receivedAt);
    const own: Signature = { timestamp: signature.timestamp, values: [asHex(computed)] };
    return found(
      mistakeOfComputation(signature, own, current, body) ??
        this.previousSecret(endpoint, own, body) ??
        (await this.otherEndpoint(endpoint, own, body, modes)) ??
        'wrong_secret',
    );
  }

  /**
   * A request that is pasted long after its receipt is old, although no clock is wrong. Only its time of receipt, or a
   * `t` in the future, proves a wrong clock.
   */
  private timely({ timestamp }: Signature, receivedAt: Date | null): Diagnosis {
    const at = receivedAt ?? this.clock.now();
    const secondsOff = Math.round(at.getTime() / 1_000) - timestamp;
    if (Math.abs(secondsOff) <= TOLERANCE_SECONDS) return found('valid');
    return { code: receivedAt === null && secondsOff > 0 ? 'stale' : 'clock_off', secondsOff };
  }

  private previousSecret(
    { previousSecret, id }: WebhookEndpointEntity,
    signature: Signature,
    body: string,
  ): DiagnosisCode | null {
    if (previousSecret === null) return null;
    return matches(signature, this.secrets.open(previousSecret, id), body) ? 'old_secret' : null;
  }

  /** Tries all endpoints: a partner has at most 20 per mode. */
  private async otherEndpoint(
    { partnerId, id, mode }: WebhookEndpointEntity,
    signature: Signature,
    body: string,
    modes: readonly Mode[],
  ): Promise<DiagnosisCode | null> {
    const { items } = await this.endpoints.listOfPartner({ partnerId }, { limit: 100, cursor: undefined });
    const other = items.find(
      (each) =>
        each.id !== id &&
        modes.includes(each.mode) &&
        matches(signature, this.secrets.open(each.secret, each.id), body),
    );
    if (!other) return null;
    return other.mode === mode ? 'other_endpoint' : 'other_mode';
  }
}

function found(code: DiagnosisCode): Diagnosis {
  return { code, secondsOff: null };
}
