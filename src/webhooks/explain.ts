import { Inject, Injectable } from '@nestjs/common';
import { APP_CONFIG, type AppConfig } from '../config/index.js';
import type { AttemptPhase } from './delivery.js';
import { maxAttempts } from './delivery-rules.js';
import { type Cause, causeOf, type CauseInWords, IN_WORDS } from './failure-causes.js';
import type { ShownEndpoint } from './show-endpoints.js';
import { deliveryStatus, type WebhookDeliveryEntity } from './webhook-delivery.entity.js';
import { endpointStatus, type WebhookEndpointEntity } from './webhook-endpoint.entity.js';

/** A plain-language explanation: cause, owner, cure, evidence, and what happens next and when. */
export interface Explanation extends CauseInWords {
  readonly cause: Cause;
  /** Facts from the log, newest first. */
  readonly evidence: readonly string[];
  readonly next: string;
  readonly nextAt: Date | null;
}

type Next = Pick<Explanation, 'next' | 'nextAt'>;

const LAST_ATTEMPT = 'This was the last attempt. Resend the delivery, or replay the time range.';
/** A test cannot be resent. */
const TESTED_ONCE = 'We send a test event only once. Fix the cause, then send another test event.';

/** Predicate of a sentence about an attempt in flight, by its phase. */
const PHASE_IN_WORDS: Readonly<Record<AttemptPhase, string>> = {
  dns: 'is looking up your host',
  connect: 'is connecting to your server',
  tls: 'is establishing TLS with your server',
  waiting: 'is waiting for the response of your server',
};

/** Explains deliveries and endpoints from the log and the endpoint's row alone. */
@Injectable()
export class Explain {
  constructor(@Inject(APP_CONFIG) private readonly config: Pick<AppConfig, 'webhooks'>) {}

  delivery(delivery: WebhookDeliveryEntity, endpoint: WebhookEndpointEntity): Explanation {
    const cause = causeOfDelivery(delivery);
    const next = this.nextOf(delivery, endpoint);
    const words = IN_WORDS[cause];
    const summary = cause === 'not_tried' ? untried(delivery) : words.summary;
    return { cause, ...atTimeOf(delivery, { ...words, summary }), evidence: evidenceOf(delivery), ...next };
  }

  /** @param lastFailure the endpoint's newest delivery whose last attempt failed */
  endpoint({ endpoint, figures }: ShownEndpoint, lastFailure: WebhookDeliveryEntity | null): Explanation {
    const status = endpointStatus(endpoint);
    const isSwitch = status === 'disabled' && endpoint.disabledReason === 'manual';
    const isHealthy = status === 'enabled' && (figures.failing === null || lastFailure === null);
    const failed = isHealthy || isSwitch ? null : lastFailure;
    const cause = isSwitch ? 'switched_off' : failed ? causeOfDelivery(failed) : 'delivered';
    const words = isHealthy
      ? { ...IN_WORDS.delivered, summary: 'The endpoint is enabled.' }
      : IN_WORDS[cause];
    const counts = [
      `Blocks in a row: ${endpoint.consecutiveBlocks} of ${this.config.webhooks.blocksBeforeDisable}.`,
      `Pending deliveries: ${figures.waiting}. Failed since the last success: ${figures.failedSinceLastSuccess}.`,
      figures.lastSuccessAt
        ? `The last success was at ${figures.lastSuccessAt.toISOString()}.`
        : 'No delivery has succeeded yet.',
      ...(figures.failing ? [`Attempts have failed since ${figures.failing.since.toISOString()}.`] : []),
    ];
    const evidence = [...(failed ? evidenceOf(failed) : []), ...counts];
    return { cause, ...(failed ? atTimeOf(failed, words) : words), evidence, ...nextOfEndpoint(endpoint) };
  }

  private nextOf(delivery: WebhookDeliveryEntity, endpoint: WebhookEndpointEntity): Next {
    switch (deliveryStatus(delivery)) {
      case 'delivered':
        return { next: 'Nothing. The event was delivered.', nextAt: null };
      case 'discarded':
        return {
          next: 'Nothing. The delivery was discarded by choice, with its endpoint, or because of its age.',
          nextAt: null,
        };
      case 'failed':
        return { next: delivery.kind === 'test' ? TESTED_ONCE : LAST_ATTEMPT, nextAt: null };
      case 'held':
        return { next: 'We send the event when the endpoint is switched on.', nextAt: null };
      case 'pending':
        return this.nextAttempt(delivery, endpoint);
    }
  }

  private nextAttempt(
    { attemptCount, kind, nextAttemptAt, inFlight, startedAt }: WebhookDeliveryEntity,
    endpoint: WebhookEndpointEntity,
  ): Next {
    const { timeoutMs } = this.config.webhooks;
    const most = kind === 'test' ? 1 : maxAttempts(this.config.webhooks);
    const which = `Attempt ${attemptCount + 1} of at most ${most}`;
    if (inFlight && startedAt)
      return {
        next: `${which} ends when your server responds, or after ${timeoutMs / 1_000} s.`,
        nextAt: new Date(startedAt.getTime() + timeoutMs),
      };
    const blockedUntil = endpoint.blocked ? endpoint.blockedUntil : null;
    if (blockedUntil !== null && (nextAttemptAt === null || nextAttemptAt < blockedUntil))
      return { next: `${which} starts when the endpoint's block ends.`, nextAt: blockedUntil };
    return { next: `${which} starts automatically.`, nextAt: nextAttemptAt };
  }
}

function nextOfEndpoint(endpoint: WebhookEndpointEntity): Next {
  switch (endpointStatus(endpoint)) {
    case 'enabled':
      return { next: 'We send events as they happen, and retry deliveries that fail.', nextAt: null };
    case 'blocked':
      return {
        next: 'The block ends automatically. We then send pending deliveries, slowly at first.',
        nextAt: endpoint.blockedUntil,
      };
    case 'disabled':
      return {
        next: 'Nothing until you switch the endpoint on. We then send the held events, slowly at first.',
        nextAt: null,
      };
  }
}

/** Some cures name the time of the attempt, so that a reader finds it in a log. */
function atTimeOf({ lastStartedAt }: WebhookDeliveryEntity, words: CauseInWords): CauseInWords {
  return { ...words, cure: words.cure.replace('{time}', lastStartedAt?.toISOString() ?? '') };
}

function causeOfDelivery(delivery: WebhookDeliveryEntity): Cause {
  const { lastOutcome, lastStatusCode, lastError } = delivery;
  if (lastOutcome !== null)
    return causeOf({ outcome: lastOutcome, statusCode: lastStatusCode, error: lastError });
  return deliveryStatus(delivery) === 'held' ? 'switched_off' : 'not_tried';
}

/** Summary of a delivery without an ended attempt. */
function untried(delivery: WebhookDeliveryEntity): string {
  // The attempt of a discarded delivery goes on, and may still deliver it.
  if (delivery.inFlight) return `The first attempt ${activityOf(delivery)}.`;
  return deliveryStatus(delivery) === 'discarded' ? 'The event was not sent.' : IN_WORDS.not_tried.summary;
}

function activityOf({ currentPhase }: WebhookDeliveryEntity): string {
  return currentPhase ? PHASE_IN_WORDS[currentPhase] : 'has started';
}

function evidenceOf(delivery: WebhookDeliveryEntity): readonly string[] {
  const { lastStartedAt, lastStatusCode, lastError, lastLatencyMs, attemptCount, inFlight, startedAt } =
    delivery;
  const current =
    inFlight && startedAt
      ? [`Attempt ${attemptCount + 1} started at ${startedAt.toISOString()} and is still in progress.`]
      : [];
  if (lastStartedAt === null) return current.length > 0 ? current : ['No attempt was made.'];
  const what = lastStatusCode === null ? (lastError ?? 'no response') : `status ${lastStatusCode}`;
  return [
    ...current,
    `Attempt ${attemptCount} at ${lastStartedAt.toISOString()}: ${what} after ${lastLatencyMs ?? 0} ms.`,
  ];
}
