import { Inject, Injectable } from '@nestjs/common';
import { APP_CONFIG, type AppConfig } from '../config/index.js';
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

const LAST_ATTEMPT = 'Nothing by itself: it was its last attempt. Resend it, or replay the time.';
/** A test cannot be resent. */
const TESTED_ONCE =
  'Nothing by itself: a test has one attempt, so it was its last attempt. Correct the cause, and send another test event.';

const FIRST_UNDER_WAY: CauseInWords = {
  ...IN_WORDS.not_tried,
  summary: 'Its first attempt waits for the answer of your receiver.',
};

/** Explains deliveries and endpoints from the log and the endpoint's row alone. */
@Injectable()
export class Explain {
  constructor(@Inject(APP_CONFIG) private readonly config: Pick<AppConfig, 'webhooks'>) {}

  delivery(delivery: WebhookDeliveryEntity, endpoint: WebhookEndpointEntity): Explanation {
    const cause = causeOfDelivery(delivery);
    const next = this.nextOf(delivery, endpoint);
    const words = cause === 'not_tried' && delivery.inFlight ? FIRST_UNDER_WAY : IN_WORDS[cause];
    return { cause, ...words, evidence: evidenceOf(delivery), ...next };
  }

  /** @param lastFailure the endpoint's newest delivery whose last attempt failed */
  endpoint({ endpoint, figures }: ShownEndpoint, lastFailure: WebhookDeliveryEntity | null): Explanation {
    const status = endpointStatus(endpoint);
    const isSwitch = status === 'disabled' && endpoint.disabledReason === 'manual';
    const failed = status === 'enabled' || isSwitch ? null : lastFailure;
    const cause = isSwitch ? 'switched_off' : failed ? causeOfDelivery(failed) : 'delivered';
    const words =
      status === 'enabled' ? { ...IN_WORDS.delivered, summary: 'The endpoint is on.' } : IN_WORDS[cause];
    const counts = [
      `${endpoint.consecutiveBlocks} of ${this.config.webhooks.blocksBeforeDisable} blocks in a row.`,
      `${figures.waiting} deliveries wait; ${figures.failedSinceLastSuccess} were given up since the last success.`,
      figures.lastSuccessAt
        ? `The last success was at ${figures.lastSuccessAt.toISOString()}.`
        : 'There has been no success yet.',
    ];
    const evidence = [...(failed ? evidenceOf(failed) : []), ...counts];
    return { cause, ...words, evidence, ...nextOfEndpoint(endpoint) };
  }

  private nextOf(delivery: WebhookDeliveryEntity, endpoint: WebhookEndpointEntity): Next {
    switch (deliveryStatus(delivery)) {
      case 'delivered':
        return { next: 'Nothing: it is delivered.', nextAt: null };
      case 'discarded':
        return { next: 'Nothing: it was given up by a choice, a deletion or its age.', nextAt: null };
      case 'failed':
        return { next: delivery.kind === 'test' ? TESTED_ONCE : LAST_ATTEMPT, nextAt: null };
      case 'held':
        return { next: 'It is sent when the endpoint is switched on.', nextAt: null };
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
        next: `${which} ends with the answer of your receiver, or after ${timeoutMs / 1_000} s without one.`,
        nextAt: new Date(startedAt.getTime() + timeoutMs),
      };
    const blockedUntil = endpoint.blocked ? endpoint.blockedUntil : null;
    if (blockedUntil !== null && (nextAttemptAt === null || nextAttemptAt < blockedUntil))
      return { next: `${which} follows when the block of the endpoint ends.`, nextAt: blockedUntil };
    return { next: `${which} follows by itself.`, nextAt: nextAttemptAt };
  }
}

function nextOfEndpoint(endpoint: WebhookEndpointEntity): Next {
  switch (endpointStatus(endpoint)) {
    case 'enabled':
      return { next: 'Events are sent as they come.', nextAt: null };
    case 'blocked':
      return {
        next: 'The block ends by itself, and what waits is sent, slowly at first.',
        nextAt: endpoint.blockedUntil,
      };
    case 'disabled':
      return {
        next: 'Nothing by itself: switch the endpoint on, and what is held is sent, slowly at first.',
        nextAt: null,
      };
  }
}

function causeOfDelivery(delivery: WebhookDeliveryEntity): Cause {
  const { lastOutcome, lastStatusCode, lastError } = delivery;
  if (lastOutcome !== null)
    return causeOf({ outcome: lastOutcome, statusCode: lastStatusCode, error: lastError });
  return deliveryStatus(delivery) === 'held' ? 'switched_off' : 'not_tried';
}

function evidenceOf(delivery: WebhookDeliveryEntity): readonly string[] {
  const { lastStartedAt, lastStatusCode, lastError, lastLatencyMs, attemptCount, inFlight, startedAt } =
    delivery;
  const current =
    inFlight && startedAt
      ? [`Attempt ${attemptCount + 1} is under way since ${startedAt.toISOString()}.`]
      : [];
  if (lastStartedAt === null) return current.length > 0 ? current : ['There was no attempt.'];
  const what = lastStatusCode === null ? (lastError ?? 'no answer') : `status ${lastStatusCode}`;
  return [
    ...current,
    `Attempt ${attemptCount}, at ${lastStartedAt.toISOString()}: ${what} after ${lastLatencyMs ?? 0} ms.`,
  ];
}
