import type { Logger } from 'pino';
import type { Clock } from '../../common/clock.js';
import type { Mode } from '../../common/mode.js';
import type { AttemptOutcome } from '../delivery.js';
import { signWebhook, standardHeaders } from '../signature.js';
import { boundedCache } from '../../infra/bounded-cache.js';
import type { SecretBox } from '../../infra/crypto/index.js';
import type { Tracer } from '../../infra/tracing/index.js';
import type { DeliveriesRepository, StartedDelivery } from './deliveries.repository.js';
import type { EndpointLeases } from './endpoint-leases.js';
import type { AttemptResult, FinishedAttempt } from './attempt-result.js';
import { describeAttempt, orderOf, spanOfAttempt } from './attempt-span.js';
import type { DeliveryTracesRepository } from './delivery-traces.repository.js';
import type { OutcomeBatcher } from './outcome-batcher.js';
import type { RunningAttempts } from './running-attempts.js';
import { TargetPace } from './target-pace.js';
import type { OutgoingWebhook, WebhookSender } from './webhook-sender.js';

export interface AttemptPerformerParts {
  readonly deliveries: Pick<DeliveriesRepository, 'putBack' | 'discard'>;
  readonly leases: Pick<EndpointLeases, 'isHeld'>;
  /** One batcher per mode, so that a delayed Sandbox outcome cannot delay one of Live (D41). */
  readonly batchers: Readonly<Record<Mode, OutcomeBatcher>>;
  readonly sender: WebhookSender;
  readonly running: Pick<RunningAttempts, 'watch'>;
  readonly secrets: DecryptedSecretCache;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly tracer: Tracer;
  readonly traces: Pick<DeliveryTracesRepository, 'find'>;
  /** The partner and mode of an endpoint. */
  ownerOf(endpointId: string): string;
  /** Maximum duration of an attempt, in milliseconds. */
  readonly timeoutMs: number;
  /** Once true, started but unsent deliveries are put back unchanged. */
  isStopping(): boolean;
}

type AttemptOfNow = AttemptResult & Pick<FinishedAttempt, 'requestHeaders'>;
type MadeAttempt = AttemptOfNow & Pick<FinishedAttempt, 'traceId'>;

const USER_AGENT = 'partner-esim-service-webhooks/1.0';
/**
 * After an error on our side (a signing secret that cannot be decrypted) the delivery waits without using an attempt.
 */
const OUR_FAULT_PAUSE_MS = 60_000;

/** Performs one attempt: signs, sends, records. */
export class AttemptPerformer {
  private readonly pace = new TargetPace();

  constructor(private readonly parts: AttemptPerformerParts) {}

  /** Resolves with the outcome after its commit; null when there was no attempt. */
  async perform(delivery: StartedDelivery, control: AbortController): Promise<AttemptOutcome | null> {
    const attempt =
      delivery.interruptedAgoMs === null
        ? await this.trace(delivery, control)
        : interruptedAttempt(delivery.interruptedAgoMs, this.parts.timeoutMs);
    // Outside the attempt's span: many attempts are recorded together, and so are their log lines.
    if (attempt) await this.parts.batchers[delivery.mode].add(finished(delivery, attempt));
    return attempt?.outcome ?? null;
  }

  private async trace(delivery: StartedDelivery, control: AbortController): Promise<MadeAttempt | null> {
    const { tracer, traces } = this.parts;
    const trace = tracer.isOn ? await traces.find(delivery) : null;
    return tracer.inSpan(spanOfAttempt(delivery, trace), async (span) => {
      const attempt = await this.attempt(delivery, control);
      describeAttempt(span, attempt);
      return attempt && { ...attempt, traceId: span.context?.traceId ?? null };
    });
  }

  private async attempt(delivery: StartedDelivery, control: AbortController): Promise<AttemptOfNow | null> {
    const { body, endpointId } = delivery;
    if (body === null) return this.discard(delivery);
    const owner = this.parts.ownerOf(endpointId);
    const { hostname } = new URL(delivery.url);
    await this.pace.turn(owner, hostname, () => this.parts.isStopping());
    const isStopping = this.parts.isStopping();
    const webhook = isStopping ? null : this.sign(delivery, owner, Buffer.from(body));
    if (webhook && !(await this.parts.leases.isHeld(endpointId, delivery.fence))) return this.drop(delivery);
    if (webhook) {
      const { sender, running } = this.parts;
      const result = await running.watch(delivery, (clock) => sender.send(webhook, control, clock));
      if (result.outcome === 'delivered') this.pace.prove(owner, hostname);
      return { ...result, requestHeaders: withoutSignature(webhook.headers) };
    }
    await this.parts.deliveries.putBack(delivery, isStopping ? 0 : OUR_FAULT_PAUSE_MS);
    return null;
  }

  private async discard(delivery: StartedDelivery): Promise<null> {
    const { id: deliveryId, endpointId } = delivery;
    await this.parts.deliveries.discard(delivery);
    this.parts.logger.warn({ event: 'webhook.event_gone', deliveryId, endpointId }, 'discarded');
    return null;
  }

  /** Drops the delivery: another process owns its endpoint and sends it. */
  private drop({ id: deliveryId, endpointId }: StartedDelivery): null {
    this.parts.logger.warn({ event: 'webhook.lease_lost', deliveryId, endpointId }, 'not sent');
    return null;
  }

  /** Every attempt gets a fresh `t`: receivers reject anything older than five minutes (D29). */
  private sign(delivery: StartedDelivery, owner: string, body: Buffer): OutgoingWebhook | null {
    const { secrets, clock, logger } = this.parts;
    try {
      const input = {
        timestampSeconds: Math.floor(clock.now().getTime() / 1_000),
        body,
        secrets: delivery.sealedSecrets.map((sealed) => secrets.open(sealed, delivery.endpointId)),
      };
      const headers = headersOf(delivery, signWebhook(input));
      if (delivery.standard) Object.assign(headers, standardHeaders(messageIdOf(body), input));
      return { url: delivery.url, body, headers, owner };
    } catch (error) {
      const { id: deliveryId, endpointId } = delivery;
      logger.error(
        { event: 'webhook.signing_failed', deliveryId, endpointId, err: error },
        'retrying in a minute',
      );
      return null;
    }
  }
}

/** Every body begins with its id, including a test's. */
function messageIdOf(body: Buffer): string {
  return (JSON.parse(body.toString()) as { readonly id: string }).id;
}

/** The document's headers, and no others unless the endpoint has requested them (spec section 6, D28, D49). */
function headersOf(delivery: StartedDelivery, signature: string): Record<string, string> {
  return {
    'Content-Type': 'application/json',
    'User-Agent': USER_AGENT,
    'X-Service-Signature': signature,
    'X-Service-Event': delivery.eventType,
    'X-Service-Delivery': delivery.id,
  };
}

/**
 * Headers for the log: keeps `t` and the number of signatures, but not the signatures, which a receiver would accept.
 */
function withoutSignature(headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const { 'X-Service-Signature': signature = '', 'webhook-signature': standard } = headers;
  return {
    ...headers,
    'X-Service-Signature': signature.replaceAll(/v1=[0-9a-f]+/g, 'v1=[redacted]'),
    ...(standard === undefined
      ? {}
      : { 'webhook-signature': standard.replaceAll(/v1,[^ ]+/g, 'v1,[redacted]') }),
  };
}

function finished(delivery: StartedDelivery, attempt: MadeAttempt): FinishedAttempt {
  const { id: deliveryId, endpointId, fence, kind, countedAttempts, interruptions } = delivery;
  const state = { kind, countedAttempts, interruptions };
  return { ...attempt, ...state, deliveryId, endpointId, fence, orderId: orderOf(delivery) };
}

/** The attempt of an owner that died; the receiver's response and its time are unknown (D30). */
function interruptedAttempt(startedAgoMs: number, timeoutMs: number): MadeAttempt {
  const ranMs = Math.min(startedAgoMs, timeoutMs);
  return {
    outcome: 'interrupted',
    statusCode: null,
    latencyMs: ranMs,
    error: 'interrupted',
    phases: null,
    reusedConnection: false,
    requestHeaders: null,
    traceId: null,
    responseHeaders: null,
    responseBody: null,
    endedAt: performance.now() - startedAgoMs + ranMs,
  };
}

/** Beyond this number the least recently used secret is evicted. */
const MAX_SECRETS_KEPT = 2_000;

/**
 * Caches decrypted signing secrets of active endpoints: decryption is a third of an attempt's CPU. A rotation seals a
 * new text, so a cached value is never stale.
 */
export class DecryptedSecretCache {
  private readonly kept = boundedCache<string>(MAX_SECRETS_KEPT);

  constructor(private readonly box: Pick<SecretBox, 'open'>) {}

  /** @throws Error as `SecretBox.open` does */
  open(sealed: string, endpointId: string): string {
    const key = `${endpointId} ${sealed}`;
    let secret = this.kept.get(key);
    if (secret === undefined) this.kept.set(key, (secret = this.box.open(sealed, endpointId)));
    return secret;
  }
}
