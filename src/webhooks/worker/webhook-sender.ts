import { Agent as HttpAgent, type IncomingMessage, request as httpRequest } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { JobInterrupted } from '../../infra/jobs/index.js';
import type { TargetPolicy } from '../target-policy.js';
import {
  type AttemptResult,
  describeFailure,
  keptHeaders,
  PhaseClock,
  toSafeText,
} from './attempt-result.js';
import { type ResolveAddresses, TargetRefused, vettedLookup } from './vetted-lookup.js';

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

/** What is read of a response body, and kept when the attempt failed. */
export const MAX_RESPONSE_BYTES = 16 * 1_024;
/** What is kept of the body of a success: nobody looks for a fault in it, and most attempts succeed. */
export const MAX_SUCCESS_BYTES = 2 * 1_024;
/** Shorter than what servers allow by default, and cut further by their `Keep-Alive` hint. */
const IDLE_SOCKET_MS = 4_000;
const IDLE_SOCKETS_PER_ORIGIN = 256;

/** They do not count (D30), but one receiver that sends them without end must not use up a worker (D34). */
export const MAX_INFORMATIONAL_ANSWERS = 100_000;

class DeadlineReached extends Error {}

class InformationalFlood extends Error {
  readonly code = 'INFORMATIONAL_FLOOD';
}

/** 101 is no final answer, and we never asked to switch (D30). */
class ProtocolSwitched extends Error {
  readonly code = 'SWITCHING_PROTOCOLS';
}

/**
 * Sends attempts over shared keep-alive connections. Connections per origin are bounded by the runner's slots and by
 * nothing here: two endpoints may share an origin, and one that hangs must not hold the other's connections (D34).
 * Node's own client, because undici ends the connection at an unasked `100 Continue`, and 1xx do not count (D30).
 * It follows no redirects, asks no proxy, unpacks nothing, and makes no hidden second request.
 */
export class WebhookSender {
  private readonly http: HttpAgent;
  private readonly https: HttpsAgent;

  constructor(private readonly options: WebhookSenderOptions) {
    const settings = {
      keepAlive: true,
      timeout: IDLE_SOCKET_MS,
      maxFreeSockets: IDLE_SOCKETS_PER_ORIGIN,
      lookup: vettedLookup(options.policy, options.resolve),
    };
    this.http = new HttpAgent(settings);
    // Said, so that NODE_TLS_REJECT_UNAUTHORIZED=0 does not turn it off.
    this.https = new HttpsAgent({ ...settings, rejectUnauthorized: true });
  }

  /** Never rejects. Aborting `control` with `JobInterrupted` cuts the attempt and says so in the outcome. */
  async send(webhook: OutgoingWebhook, control: AbortController): Promise<AttemptResult> {
    const clock = new PhaseClock();
    const timer = setTimeout(() => control.abort(new DeadlineReached()), this.options.timeoutMs);
    try {
      if (this.options.policy.refuseUrl(webhook.url)) throw new TargetRefused();
      const response = await untilAborted(this.post(webhook, control.signal, clock), control.signal);
      return await readAnswer(response, clock);
    } catch (error) {
      return failedBy(control.signal.aborted ? control.signal.reason : error, clock);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Cuts whatever is left. */
  close(): void {
    this.http.destroy();
    this.https.destroy();
  }

  /** Resolves with the final status and headers. */
  private post(
    { url, headers, body }: OutgoingWebhook,
    signal: AbortSignal,
    clock: PhaseClock,
  ): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const target = new URL(url);
      const options = { method: 'POST', headers, signal };
      const request =
        target.protocol === 'https:'
          ? httpsRequest(target, { ...options, agent: this.https })
          : httpRequest(target, { ...options, agent: this.http });
      clock.watch(request, target);
      let informational = 0;
      request.on('information', () => {
        if (++informational > MAX_INFORMATIONAL_ANSWERS) request.destroy(new InformationalFlood());
      });
      request.on('response', resolve);
      request.on('upgrade', (_response, socket) => {
        socket.destroy();
        reject(new ProtocolSwitched());
      });
      request.on('error', reject);
      request.end(body);
    });
  }
}

/** Does not wait for Node to notice: whatever hangs in it, the deadline is kept. */
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

/** The status line decides the outcome; whatever happens to the body does not change it (D30). */
async function readAnswer(response: IncomingMessage, clock: PhaseClock): Promise<AttemptResult> {
  const latencyMs = performance.now() - clock.startedAt;
  const body = await readCapped(response);
  const endedAt = performance.now();
  const statusCode = response.statusCode ?? 0;
  const success = statusCode >= 200 && statusCode < 300;
  const bytes = body.bytes.subarray(0, success ? MAX_SUCCESS_BYTES : MAX_RESPONSE_BYTES);
  const wasCut = body.wasCut || bytes.length < body.bytes.length;
  return {
    outcome: success ? 'delivered' : 'failed',
    statusCode,
    latencyMs,
    error: success ? null : 'http_status',
    phases: clock.stop(endedAt),
    reusedConnection: clock.reusedConnection,
    responseHeaders: keptHeaders(response.rawHeaders),
    responseBody: bytes.length === 0 ? null : toSafeText(bytes, wasCut),
    endedAt,
  };
}

async function readCapped(body: IncomingMessage): Promise<{ bytes: Buffer; wasCut: boolean }> {
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

function failedBy(error: unknown, clock: PhaseClock): AttemptResult {
  const endedAt = performance.now();
  const interrupted = error instanceof JobInterrupted;
  return {
    outcome: interrupted ? 'interrupted' : 'failed',
    statusCode: null,
    latencyMs: endedAt - clock.startedAt,
    error: interrupted
      ? 'interrupted'
      : error instanceof DeadlineReached
        ? 'timeout'
        : describeFailure(error),
    phases: clock.stop(endedAt),
    reusedConnection: clock.reusedConnection,
    responseHeaders: null,
    responseBody: null,
    endedAt,
  };
}
