import { type IncomingMessage, request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { isIP, type Socket } from 'node:net';
import { untilAborted } from '../../common/time-limit.js';
import { Allowances } from '../../infra/allowances.js';
import { JobInterrupted } from '../../infra/jobs/index.js';
import { connectToAny } from '../../infra/network/connect-to-any.js';
import type { ResolveAddresses } from '../../infra/network/resolve-addresses.js';
import type { TargetPolicy } from '../target-policy.js';
import { AnswerHead, InformationalFlood, MAX_HEADER_BYTES } from './answer-head.js';
import {
  type AttemptResult,
  describeFailure,
  keptHeaders,
  PhaseClock,
  toSafeText,
} from './attempt-result.js';
import { TargetRefused, vettedAddresses } from './vetted-lookup.js';
import { type Dialing, type DialingOptions, TLS_ALLOWANCE, WebhookAgents } from './webhook-agents.js';

/** One signed POST, ready to send. */
export interface OutgoingWebhook {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  /** The partner and mode of the webhook. */
  readonly owner: string;
}

export interface WebhookSenderOptions {
  /** The whole attempt: name, connection, TLS, status line and body (spec section 6: 60 seconds). */
  readonly timeoutMs: number;
  readonly policy: TargetPolicy;
  readonly resolve: ResolveAddresses;
  /** CPU milliseconds for the TLS of each owner's receivers; `TLS_ALLOWANCE` by default. */
  readonly tlsCpu?: Allowances;
}

/** Bytes read of a response body, and stored when the attempt failed. */
export const MAX_RESPONSE_BYTES = 16 * 1_024;
/** Each chunk costs as much as a kilobyte: 16,000 of one byte would take 40 ms. */
const MAX_RESPONSE_CHUNKS = 1_000;
/** Bytes stored of a successful response: most attempts succeed, and nobody debugs them. */
export const MAX_SUCCESS_BYTES = 2 * 1_024;
/** Shorter than servers' default, and shortened further by their `Keep-Alive` hint. */
const IDLE_SOCKET_MS = 4_000;
const IDLE_SOCKETS_PER_ORIGIN = 256;

const CLOSED_BY_RECEIVER = new Set(['ECONNRESET', 'ECONNABORTED', 'EPIPE']);

class DeadlineReached extends Error {}

/** 101 is not a final response, and we never requested a switch (D30). */
class ProtocolSwitched extends Error {
  readonly code = 'SWITCHING_PROTOCOLS';
}

/** The final status; `response` is null if the headers could not be read. */
interface Answer {
  readonly statusCode: number;
  readonly response: IncomingMessage | null;
}

/**
 * Sends attempts over shared keep-alive connections. Only the runner's slots limit the connections per origin: two
 * endpoints may share an origin, and a hanging one must not hold the other's connections (D34). Uses Node's own client,
 * because undici ends the connection at an unsolicited `100 Continue`, and 1xx do not count (D30). Follows no
 * redirects, uses no proxy and decompresses nothing. Sends a request twice only when the receiver closed a keep-alive
 * connection before it responded.
 */
export class WebhookSender {
  private readonly kept: WebhookAgents;
  /** Opens a new connection for each request, and closes it after the response. */
  private readonly fresh: WebhookAgents;

  constructor(private readonly options: WebhookSenderOptions) {
    const dial = (hostname: string, port: number, dialing: Dialing): Promise<Socket> =>
      this.dial(hostname, port, dialing);
    const settings = { timeout: IDLE_SOCKET_MS, maxFreeSockets: IDLE_SOCKETS_PER_ORIGIN };
    const { tlsCpu = new Allowances(TLS_ALLOWANCE) } = options;
    this.kept = new WebhookAgents(dial, { ...settings, keepAlive: true }, tlsCpu);
    this.fresh = new WebhookAgents(dial, { ...settings, keepAlive: false }, tlsCpu);
  }

  /** Never rejects. Aborting `control` with `JobInterrupted` interrupts the attempt, and the outcome says so. */
  async send(
    webhook: OutgoingWebhook,
    control: AbortController,
    clock = new PhaseClock(),
  ): Promise<AttemptResult> {
    const timer = setTimeout(() => control.abort(new DeadlineReached()), this.options.timeoutMs);
    try {
      if (this.options.policy.refuseUrl(webhook.url)) throw new TargetRefused();
      const answer = await untilAborted(control.signal, (signal) => this.exchange(webhook, signal, clock));
      return await readAnswer(answer, clock);
    } catch (error) {
      return failedBy(control.signal.aborted ? control.signal.reason : error, clock);
    } finally {
      clearTimeout(timer);
    }
  }

  close(): void {
    this.kept.destroy();
    this.fresh.destroy();
  }

  /**
   * Sends the request. If the receiver closes a keep-alive connection before the first byte of its response, sends it
   * again on a new connection.
   */
  private async exchange(webhook: OutgoingWebhook, signal: AbortSignal, clock: PhaseClock): Promise<Answer> {
    try {
      return await this.post(webhook, this.kept, { signal, clock, owner: webhook.owner });
    } catch (error) {
      const { code = '' } = error as NodeJS.ErrnoException;
      const mayRepeat = clock.reusedConnection && !clock.hasFirstByte && CLOSED_BY_RECEIVER.has(code);
      if (!mayRepeat || signal.aborted) throw error;
      return this.post(webhook, this.fresh, { signal, clock, owner: webhook.owner });
    }
  }

  /** Connects to the first vetted address that accepts. */
  private async dial(hostname: string, port: number, { clock, signal }: Dialing): Promise<Socket> {
    // A literal, allowed in development only, needs no lookup.
    clock.enter(isIP(hostname) === 0 ? 'dns' : 'connect');
    const addresses = await vettedAddresses(this.options.policy, this.options.resolve, hostname);
    clock.enter('connect');
    const socket = await connectToAny(addresses, port, signal);
    clock.enter(null);
    return socket;
  }

  /** Resolves with the final status, and with the headers if they are readable. */
  private post(
    { url, headers, body }: OutgoingWebhook,
    agents: WebhookAgents,
    dialing: Dialing,
  ): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const target = new URL(url);
      const { signal, clock } = dialing;
      const agent = agents.of(target.protocol);
      const options: DialingOptions = {
        ...{ method: 'POST', headers, signal, agent, dialing },
        maxHeaderSize: MAX_HEADER_BYTES,
      };
      const request =
        target.protocol === 'https:' ? httpsRequest(target, options) : httpRequest(target, options);
      const head = new AnswerHead();
      clock.watch(request);
      request.once('socket', (socket) => {
        const read = (chunk: Buffer): void => {
          try {
            head.read(chunk);
          } catch (error) {
            request.destroy(error as Error);
          }
        };
        socket.prependListener('data', read);
        request.once('close', () => socket.off('data', read));
      });
      request.on('response', (response) => resolve({ statusCode: response.statusCode ?? 0, response }));
      request.on('upgrade', (_response, socket) => {
        socket.destroy();
        reject(new ProtocolSwitched());
      });
      request.on('error', (error: NodeJS.ErrnoException) => {
        // Malformed, endless or truncated headers do not change the status line's verdict (D30).
        if (head.statusCode !== null && !signal.aborted)
          resolve({ statusCode: head.statusCode, response: null });
        else reject(error.code === 'HPE_HEADER_OVERFLOW' ? new InformationalFlood() : error);
      });
      request.end(body);
    });
  }
}

/** The status line decides the outcome, whatever happens to the body (D30). */
async function readAnswer({ statusCode, response }: Answer, clock: PhaseClock): Promise<AttemptResult> {
  const latencyMs = performance.now() - clock.startedAt;
  const body = response ? await readCapped(response) : { bytes: Buffer.alloc(0), wasCut: true };
  const endedAt = performance.now();
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
    responseHeaders: response && keptHeaders(response.rawHeaders),
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
      if (size > MAX_RESPONSE_BYTES || chunks.length === MAX_RESPONSE_CHUNKS) break; // destroys the body and its connection
    }
    wasCut = size > MAX_RESPONSE_BYTES || chunks.length === MAX_RESPONSE_CHUNKS;
  } catch {
    // Cut by the deadline, shutdown or the receiver: keep the bytes so far.
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
