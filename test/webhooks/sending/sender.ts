import { onTestFinished } from 'vitest';
import type { Allowances } from '../../../src/infra/allowances.js';
import { TargetPolicy } from '../../../src/webhooks/target-policy.js';
import { type ResolveAddresses, systemResolver } from '../../../src/infra/network/resolve-addresses.js';
import type { AttemptResult } from '../../../src/webhooks/worker/attempt-result.js';
import { WebhookSender } from '../../../src/webhooks/worker/webhook-sender.js';

/** Runs `close` after the test, last registered first. */
export function afterThisTest(close: () => unknown): void {
  onTestFinished(async () => void (await close()));
}

export interface SenderSettings {
  /** A minute by default, which no test waits for, because a busy machine may need seconds. */
  timeoutMs?: number;
  allowPrivateTargets?: boolean;
  /** Overrides `allowPrivateTargets`. */
  policy?: TargetPolicy;
  resolve?: ResolveAddresses;
  tlsCpu?: Allowances;
}

function policyWith(allowPrivateTargets: boolean): TargetPolicy {
  return new TargetPolicy({ webhooks: { allowPrivateTargets } });
}

/** The worker's sender, closed after the test. By default it may send to loopback. */
export function senderWith(settings: SenderSettings = {}): WebhookSender {
  const { timeoutMs = 60_000, allowPrivateTargets = true, resolve = systemResolver() } = settings;
  const policy = settings.policy ?? policyWith(allowPrivateTargets);
  const { tlsCpu } = settings;
  const sender = new WebhookSender({ timeoutMs, policy, resolve, ...(tlsCpu && { tlsCpu }) });
  afterThisTest(() => sender.close());
  return sender;
}

/** Sends one small webhook to `url`. */
export function send(
  sender: WebhookSender,
  url: string,
  control = new AbortController(),
  owner = 'ptn_1:live',
): Promise<AttemptResult> {
  const headers = { 'Content-Type': 'application/json', 'X-Service-Event': 'esim.activated' };
  return sender.send({ url, headers, body: Buffer.from('{"id":"evt_1"}'), owner }, control);
}
