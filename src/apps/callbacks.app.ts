import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import {
  CallbackAuthenticator,
  type CallbackRateLimit,
  CallbackSender,
  CallbacksModule,
  type CallbackTaker,
} from '../esim-sync/index.js';
import { clientAddress } from '../infra/http/edge/index.js';
import { type RunningHttpApp, startPort } from './http-app.js';
import type { ProcessResources } from './process-resources.js';

/** Refused calls are counted and logged together, so that strangers cannot fill the log. */
const REFUSALS_LOGGED_EVERY_MS = 60_000;

/**
 * Listens for providers' callbacks on `CALLBACK_HOST:CALLBACK_PORT`, which serves nothing else (D3). Without a secret,
 * returns null and does not listen.
 * @param requestTimeoutMs how long a whole request may take to arrive; default 10 s
 */
export async function startCallbacks(
  process: Pick<ProcessResources, 'config' | 'logger' | 'metrics'>,
  take: CallbackTaker,
  limit: CallbackRateLimit,
  requestTimeoutMs?: number,
): Promise<RunningHttpApp | null> {
  const { config, logger } = process;
  const { host, port, secret, allowedCidrs, trustProxyHops } = config.callbacks;
  if (secret === null) return null;
  const log = new CallbackLog(logger, trustProxyHops);
  const authenticator = new CallbackAuthenticator({
    secret,
    allowedCidrs,
    knows: (provider) => take.knows(provider),
    limit,
    logger,
  });
  const running = await startPort(process, {
    port: 'callbacks',
    module: CallbacksModule.of(take, logger),
    listen: { host, port },
    trustProxyHops,
    // A wholesaler may send a key in its own format, and nothing here reads it.
    idempotencyKeyRequired: null,
    ...(requestTimeoutMs === undefined ? {} : { requestTimeoutMs }),
    // Recorded by `log` instead: the path contains the secret, so no other log may contain the path.
    services: () => ({ authenticator, recorder: { record: () => undefined } }),
    prepare: (_app, fastify) => {
      fastify.addHook('onResponse', (request, reply, done) => done(void log.write(request, reply)));
    },
  });
  // After an upgrade without CALLBACK_TRUST_PROXY, all callbacks would be refused, or all senders would share a bucket.
  if (config.trustProxyHops > 0 && trustProxyHops === 0)
    logger.warn(
      { event: 'callback.proxies_not_trusted' },
      'TRUST_PROXY is set but CALLBACK_TRUST_PROXY is not: callback senders are told apart by the address that connects',
    );
  return running;
}

class CallbackLog {
  private refusals = 0;
  private refusalsLoggedAtMs = -Infinity;

  constructor(
    private readonly logger: Logger,
    private readonly trustProxyHops: number,
  ) {}

  /** Logs neither the path, which contains the secret, nor the body, which may be a stranger's. */
  write({ principal, raw }: FastifyRequest, reply: FastifyReply): void {
    if (!(principal instanceof CallbackSender)) return this.countRefusal(raw);
    if (raw.method === 'HEAD') return;
    const { provider, hints } = principal;
    const latencyMs = Math.round(reply.elapsedTime);
    this.logger.info({ event: 'callback.taken', provider, hints, status: reply.statusCode, latencyMs });
  }

  /** Lets an operator notice, for example, that a provider's address is missing in `CALLBACK_ALLOWED_CIDRS`. */
  private countRefusal(request: FastifyRequest['raw']): void {
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
}
