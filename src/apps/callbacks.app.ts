import { createHash, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Logger } from 'pino';
import { endsWithin } from '../common/ends-within.js';
import type { AppConfig } from '../config/index.js';
import { clientAddress, pathOf } from '../infra/http/edge/index.js';
import { createPlainServer } from '../infra/http/plain-server.js';
import { NetworkList } from '../infra/network/ip-address.js';
import type { TakeCallback } from '../esim-sync/index.js';
import type { RunningApp } from './http-app.js';
import { portLimits } from './port-limits.js';
import type { ProcessResources } from './process-resources.js';

const PATH = /^\/callbacks\/([a-z0-9_-]{1,64})\/([A-Za-z0-9_-]{1,256})$/;
/** What a path without the right shape is compared with: it costs the same and fits nothing. */
const NO_MATCH = ['', '', ''] as const;

export interface CallbackAuthenticatorSettings {
  readonly secret: string;
  readonly allowedCidrs: AppConfig['callbacks']['allowedCidrs'];
  readonly trustProxyHops: AppConfig['callbacks']['trustProxyHops'];
  /** Whether a provider of that name is connected. */
  knows(provider: string): boolean;
}

/** Knows a provider's callback: it comes from an allowed address, has the secret and names a connected provider. */
export class CallbackAuthenticator {
  private readonly secret: Buffer;
  private readonly senders: NetworkList | null;

  constructor(private readonly settings: CallbackAuthenticatorSettings) {
    const { secret, allowedCidrs } = settings;
    this.secret = digestOf(secret);
    this.senders = allowedCidrs.length > 0 ? new NetworkList(allowedCidrs) : null;
  }

  /** The provider's name; null for everybody else, whatever is wrong. Takes the same time either way. */
  authenticate(request: IncomingMessage): string | null {
    const [, provider, secret] = PATH.exec(pathOf(request.url ?? '')) ?? NO_MATCH;
    const isSecret = timingSafeEqual(digestOf(secret ?? ''), this.secret);
    const isSender = this.isSender(clientAddress(request, this.settings.trustProxyHops));
    const isKnown = this.settings.knows(provider ?? '');
    return isSecret && isSender && isKnown ? provider : null;
  }

  private isSender(address: string): boolean {
    return this.senders === null || this.senders.includes(address);
  }
}

/** Of one length, as a constant-time comparison needs. */
function digestOf(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

/** Callbacks are one short object. */
const MAX_BODY_BYTES = 65_536;
/** Who drips is cut at the first look after the limit. Node looks only every 30 s by itself. */
const PATIENCE: ListenerPatience = { requestTimeoutMs: 10_000, checkConnectionsMs: 1_000 };
/** What is still taken of a refused body, so that the answer is not lost in a reset. */
const LINGER_MS = 1_000;
/** When a callback that could not be stored is worth another try. */
const UNAVAILABLE_RETRY_S = 5;
/** Refused calls are counted, not logged one by one: strangers must not fill the log. */
const REFUSALS_LOGGED_EVERY_MS = 60_000;

export interface RunningCallbacks extends RunningApp {
  /** Without a trailing slash. */
  readonly url: string;
}

type CallbackTaker = Pick<TakeCallback, 'knows' | 'execute'>;
/** Takes a token of the provider's bucket for this address; answers the seconds to wait, or null when there was one. */
export type CallbackRateLimit = (provider: string, address: string) => Promise<number | null>;

export interface ListenerPatience {
  /** From the first byte of a request to its last. */
  readonly requestTimeoutMs: number;
  readonly checkConnectionsMs: number;
}

/**
 * Listens for providers' callbacks on `CALLBACK_HOST:CALLBACK_PORT`, with nothing else on it (D3). A callback is
 * answered 200 once its hints are stored and 503 when they cannot be, so that the sender tries again. Without the
 * secret every path and method is the same 404. Null when no secret is set: then nothing listens.
 */
export async function startCallbacks(
  process: Pick<ProcessResources, 'config' | 'logger' | 'metrics'>,
  take: CallbackTaker,
  limit: CallbackRateLimit,
  { requestTimeoutMs, checkConnectionsMs } = PATIENCE,
): Promise<RunningCallbacks | null> {
  const { config, logger } = process;
  const { host, port, secret, allowedCidrs, trustProxyHops } = config.callbacks;
  if (secret === null) return null;
  const authenticator = new CallbackAuthenticator({
    secret,
    allowedCidrs,
    trustProxyHops,
    knows: (provider) => take.knows(provider),
  });
  const listener = new CallbackListener(authenticator, take, limit, trustProxyHops, logger);
  const server = createPlainServer(
    {
      requestTimeout: requestTimeoutMs,
      headersTimeout: requestTimeoutMs,
      connectionsCheckingInterval: checkConnectionsMs,
    },
    portLimits(process, 'callbacks', trustProxyHops),
    (request, response) => void listener.handle(request, response),
  );
  server.listen(port, host);
  await once(server, 'listening');
  // An operator who upgrades would see all callbacks refused, or all senders in one bucket.
  if (config.trustProxyHops > 0 && trustProxyHops === 0)
    logger.warn(
      { event: 'callback.proxies_not_trusted' },
      'TRUST_PROXY is set and CALLBACK_TRUST_PROXY is not: a sender is who connects to the callbacks’ port',
    );
  return { url: urlOf(server, host), close: (withinMs) => listener.close(server, withinMs) };
}

class CallbackListener {
  private readonly underWay = new Set<Promise<void>>();
  private refusals = 0;
  private refusalsLoggedAtMs = -Infinity;

  constructor(
    private readonly authenticator: CallbackAuthenticator,
    private readonly take: CallbackTaker,
    private readonly limit: CallbackRateLimit,
    private readonly trustProxyHops: number,
    private readonly logger: Logger,
  ) {}

  handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const work = this.answer(request, response).catch(() => void response.destroy());
    this.underWay.add(work);
    return work.finally(() => this.underWay.delete(work));
  }

  /** Nothing new is taken; what was taken is stored and answered, for as long as there is time. */
  async close(server: Server, withinMs: number): Promise<void> {
    server.close();
    server.closeIdleConnections();
    await endsWithin(Promise.allSettled(this.underWay).then(), withinMs);
    server.closeAllConnections();
  }

  private async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const provider = this.authenticator.authenticate(request);
    const { method } = request;
    if (provider === null || (method !== 'POST' && method !== 'HEAD')) {
      this.countRefusal(request);
      return refuse(request, response, 404);
    }
    // A sender may look whether anybody is there before it sends.
    if (method === 'HEAD') return end(response, 200);
    const startedAt = performance.now();
    const { status, hints, retryAfterS } = await this.store(provider, request);
    const latencyMs = Math.round(performance.now() - startedAt);
    // Neither path nor body: the one has the secret, the other may be a stranger's.
    this.logger.info({ event: 'callback.taken', provider, hints, status, latencyMs });
    if (status === 200) end(response, 200);
    else refuse(request, response, status, retryAfterS);
  }

  /** Tells an operator that a provider's address is missing in `CALLBACK_ALLOWED_CIDRS`, say. */
  private countRefusal(request: IncomingMessage): void {
    this.refusals++;
    if (performance.now() - this.refusalsLoggedAtMs < REFUSALS_LOGGED_EVERY_MS) return;
    const address = clientAddress(request, this.trustProxyHops);
    const peer = request.socket.remoteAddress;
    this.logger.warn(
      { event: 'callback.refused', refusals: this.refusals, address, peer },
      'callbacks were refused',
    );
    this.refusalsLoggedAtMs = performance.now();
    this.refusals = 0;
  }

  private async store(
    provider: string,
    request: IncomingMessage,
  ): Promise<{ status: number; hints: readonly string[]; retryAfterS?: number }> {
    // Only who knows the secret is charged: strangers must not make the database write.
    const limited = await this.waitFor(provider, clientAddress(request, this.trustProxyHops));
    if (limited) return { ...limited, hints: [] };
    if (!/^application\/json\s*(;|$)/i.test(request.headers['content-type'] ?? ''))
      return { status: 415, hints: [] };
    const body = await readBody(request);
    if (body === null) return { status: 413, hints: [] };
    const json = parse(body);
    if (json === undefined) return { status: 400, hints: [] };
    try {
      return { status: 200, hints: await this.take.execute(provider, json) };
    } catch (error) {
      this.logger.warn({ event: 'callback.not_stored', provider, err: error }, 'a callback was not stored');
      return { status: 503, hints: [], retryAfterS: UNAVAILABLE_RETRY_S };
    }
  }

  /** Null when the sender may go on, also when its bucket cannot be asked: then the store finds out. */
  private async waitFor(
    provider: string,
    address: string,
  ): Promise<{ status: number; retryAfterS: number } | null> {
    try {
      const retryAfterS = await this.limit(provider, address);
      return retryAfterS === null ? null : { status: 429, retryAfterS };
    } catch (error) {
      this.logger.warn({ event: 'callback.not_limited', err: error }, 'the rate limit cannot be asked');
      return null;
    }
  }
}

/** Null when it is longer than allowed. Pieces are copied: kept, a body of single bytes would cost a thousandfold. */
async function readBody(request: IncomingMessage): Promise<Buffer | null> {
  const body = Buffer.allocUnsafe(MAX_BODY_BYTES);
  let length = 0;
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    const piece = chunk as Buffer;
    if (length + piece.length > MAX_BODY_BYTES) return null;
    length += piece.copy(body, length);
  }
  return body.subarray(0, length);
}

/** Undefined when it is no JSON. */
function parse(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8')) as unknown;
  } catch {
    return undefined;
  }
}

function end(response: ServerResponse, status: number): void {
  response.writeHead(status, { 'content-length': 0 }).end();
}

/** Answers a request whose body was not read to its end, and hangs up. */
function refuse(
  request: IncomingMessage,
  response: ServerResponse,
  status: number,
  retryAfterS?: number,
): void {
  const retry = retryAfterS === undefined ? {} : { 'retry-after': String(retryAfterS) };
  response.writeHead(status, { 'content-length': 0, connection: 'close', ...retry }).end();
  request.resume();
  setTimeout(() => request.destroy(), LINGER_MS).unref();
}

function urlOf(server: Server, host: string): string {
  const shown = host === '0.0.0.0' ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host;
  return `http://${shown}:${(server.address() as AddressInfo).port}`;
}
