import { Agent, type Dispatcher } from 'undici';
import { toSafeText } from '../safe-text.js';
import type { TargetPolicy } from '../target-policy.js';
import type { ResolveAddresses } from './address-resolver.js';
import { describeFailure } from './failure-class.js';
import type { AttemptResult } from './finished-attempt.js';
import { AttemptInterrupted } from './leases.js';
import { TargetRefused, vettedLookup } from './vetted-lookup.js';

/** One signed POST, ready to leave. */
export interface OutgoingWebhook {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

export interface WebhookSenderOptions {
  /** The whole attempt: name, connection, TLS, status line and body (spec section 6: 60 seconds). */
  readonly timeoutMs: number;
  readonly policy: TargetPolicy;
  readonly resolve: ResolveAddresses;
}

export const MAX_RESPONSE_BYTES = 16 * 1_024;
/** undici keeps an abandoned connect alive until this, whatever the deadline: it only bounds the leftovers. */
const CONNECT_TIMEOUT_MS = 10_000;
const IDLE_SOCKET_MS = 4_000;
const LONGEST_IDLE_SOCKET_MS = 15_000;

class DeadlineReached extends Error {}

/**
 * Sends attempts over shared keep-alive connections. Connections per origin are bounded by the runner's slots and by
 * nothing here: two endpoints may share an origin, and one that hangs must not hold the other's connections (D34).
 * HTTP/1.1 only, for the same reason: one connection carries one attempt. No proxy, redirects or decompression.
 */
export class WebhookSender {
  private readonly agent: Agent;

  constructor(private readonly options: WebhookSenderOptions) {
    this.agent = new Agent({
      allowH2: false,
      pipelining: 1,
      keepAliveTimeout: IDLE_SOCKET_MS,
      keepAliveMaxTimeout: LONGEST_IDLE_SOCKET_MS,
      // The attempt's own deadline is the only one: undici's are idle times and coarse.
      headersTimeout: 0,
      bodyTimeout: 0,
      connect: {
        timeout: Math.min(CONNECT_TIMEOUT_MS, options.timeoutMs),
        lookup: vettedLookup(options.policy, options.resolve),
      },
    });
  }

  /** Never rejects. Aborting `control` with `AttemptInterrupted` cuts the attempt and says so in the outcome. */
  async send(webhook: OutgoingWebhook, control: AbortController): Promise<AttemptResult> {
    const startedAt = performance.now();
    const timer = setTimeout(() => control.abort(new DeadlineReached()), this.options.timeoutMs);
    try {
      if (this.options.policy.refuseUrl(webhook.url)) throw new TargetRefused();
      const response = await untilAborted(this.post(webhook, control.signal), control.signal);
      return await readAnswer(response, startedAt);
    } catch (error) {
      return failedBy(control.signal.aborted ? control.signal.reason : error, startedAt);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Cuts whatever is left. */
  async close(): Promise<void> {
    await this.agent.destroy();
  }

  private post(
    { url, headers, body }: OutgoingWebhook,
    signal: AbortSignal,
  ): Promise<Dispatcher.ResponseData> {
    const { origin, pathname, search } = new URL(url);
    return this.agent.request({ origin, path: pathname + search, method: 'POST', headers, body, signal });
  }
}

/** undici does not honour a signal while it resolves and connects. */
async function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  let stopListening = (): void => undefined;
  const aborted = new Promise<never>((_resolve, reject) => {
    const onAbort = (): void => reject(signal.reason as Error);
    if (signal.aborted) return onAbort();
    signal.addEventListener('abort', onAbort, { once: true });
    stopListening = () => signal.removeEventListener('abort', onAbort);
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    stopListening();
  }
}

/** The status line is the verdict; whatever happens to the body does not change it (D30). */
async function readAnswer(response: Dispatcher.ResponseData, startedAt: number): Promise<AttemptResult> {
  const firstByteMs = performance.now() - startedAt;
  const { bytes, wasCut } = await readCapped(response.body);
  const endedAt = performance.now();
  const success = response.statusCode >= 200 && response.statusCode < 300;
  return {
    outcome: success ? 'delivered' : 'failed',
    statusCode: response.statusCode,
    latencyMs: firstByteMs,
    error: success ? null : 'http_status',
    phases: { firstByteMs, totalMs: endedAt - startedAt },
    responseBody: bytes.length === 0 ? null : toSafeText(bytes, wasCut),
    endedAt,
  };
}

async function readCapped(
  body: Dispatcher.ResponseData['body'],
): Promise<{ bytes: Buffer; wasCut: boolean }> {
  const chunks: Buffer[] = [];
  let size = 0;
  let wasCut = true;
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      chunks.push(chunk);
      size += chunk.length;
      if (size > MAX_RESPONSE_BYTES) break; // destroys the body, and its connection with it
    }
    wasCut = size > MAX_RESPONSE_BYTES;
  } catch {
    // Cut by the deadline, by a stop or by the receiver: what has come is kept.
  }
  return { bytes: Buffer.concat(chunks).subarray(0, MAX_RESPONSE_BYTES), wasCut };
}

function failedBy(error: unknown, startedAt: number): AttemptResult {
  const endedAt = performance.now();
  const interrupted = error instanceof AttemptInterrupted;
  return {
    outcome: interrupted ? 'interrupted' : 'failed',
    statusCode: null,
    latencyMs: endedAt - startedAt,
    error: interrupted
      ? 'interrupted'
      : error instanceof DeadlineReached
        ? 'timeout'
        : describeFailure(error),
    phases: null,
    responseBody: null,
    endedAt,
  };
}
