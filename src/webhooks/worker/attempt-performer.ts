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
import { TargetPace } from './target-pace.js';
import type { OutgoingWebhook, WebhookSender } from './webhook-sender.js';

export interface AttemptPerformerParts {
  readonly deliveries: Pick<DeliveriesRepository, 'putBack' | 'discard'>;
  readonly leases: Pick<EndpointLeases, 'isHeld'>;
  /** Of each mode its own: nothing that an outcome of Sandbox waits for delays one of Live (D41). */
  readonly batchers: Readonly<Record<Mode, OutcomeBatcher>>;
  readonly sender: WebhookSender;
  readonly secrets: DecryptedSecretCache;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly tracer: Tracer;
  readonly traces: Pick<DeliveryTracesRepository, 'find'>;
  /** The partner and mode of an endpoint. */
  ownerOf(endpointId: string): string;
  /** The longest that an attempt can have taken, in milliseconds. */
  readonly timeoutMs: number;
  /** From then on what was started and not sent goes back untouched. */
  isStopping(): boolean;
}

type AttemptOfNow = AttemptResult & Pick<FinishedAttempt, 'requestHeaders'>;
type MadeAttempt = AttemptOfNow & Pick<FinishedAttempt, 'traceId'>;

const USER_AGENT = 'partner-esim-service-webhooks/1.0';
/** After a fault of ours (a signing secret that does not open) the delivery waits and uses up no attempt. */
const OUR_FAULT_PAUSE_MS = 60_000;

/** Makes one attempt: signs, sends, records. */
export class AttemptPerformer {
  private readonly pace = new TargetPace();

  constructor(private readonly parts: AttemptPerformerParts) {}

  /** Resolves when the outcome is committed, with it; null when there was no attempt. */
  async perform(delivery: StartedDelivery, control: AbortController): Promise<AttemptOutcome | null> {
    const attempt =
      delivery.interruptedAgoMs === null
        ? await this.trace(delivery, control)
        : interruptedAttempt(delivery.interruptedAgoMs, this.parts.timeoutMs);
    // Outside of its span: many are recorded together, and so are their log lines.
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
      const result = await this.parts.sender.send(webhook, control);
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

  /** Its endpoint has another owner, which sends it. */
  private drop({ id: deliveryId, endpointId }: StartedDelivery): null {
    this.parts.logger.warn({ event: 'webhook.lease_lost', deliveryId, endpointId }, 'not sent');
    return null;
  }

  /** A fresh `t` at every attempt: receivers refuse what is older than five minutes (D29). */
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
        'tried again in a minute',
      );
      return null;
    }
  }
}

/** Every body, a test's too, begins with its id. */
function messageIdOf(body: Buffer): string {
  return (JSON.parse(body.toString()) as { readonly id: string }).id;
}

/** The document's headers; nothing else for an endpoint that has asked for nothing (spec section 6, D28, D49). */
function headersOf(delivery: StartedDelivery, signature: string): Record<string, string> {
  return {
    'Content-Type': 'application/json',
    'User-Agent': USER_AGENT,
    'X-Service-Signature': signature,
    'X-Service-Event': delivery.eventType,
    'X-Service-Delivery': delivery.id,
  };
}

/** For the log: `t` and how many signatures there were, and not the signatures, which a receiver would accept. */
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

/** The attempt of an owner that died: nobody knows what the receiver answered, or when (D30). */
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

/** The secret used longest ago makes room for the next. */
const MAX_SECRETS_KEPT = 2_000;

/**
 * Signing secrets of the endpoints that are being sent to, decrypted once: decrypting is a third of the CPU of an
 * attempt. A rotation seals another text, so what is kept is never wrong.
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
