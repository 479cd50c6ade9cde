import type { Agent } from 'node:http';
import { usageError } from '../exit-codes.js';
import { signatureHeader } from './signing-secret.js';

/** A webhook payload: an event of the feed, or a test event. */
export interface Deliverable {
  readonly id: string;
  readonly type: string;
}

/** Result of one POST to the local server. */
export interface DeliveryResult {
  readonly delivered: boolean;
  /** `200`, or the reason why there is no status: `ECONNREFUSED`, `timeout`. */
  readonly outcome: string;
  readonly latencyMs: number;
}

/**
 * Treats `localhost:4000/hooks` and `http://localhost:4000/hooks` alike.
 * @throws CliError for anything but an http or https URL
 */
export function localUrl(text: string): URL {
  const url = URL.parse(text.includes('://') ? text : `http://${text}`);
  if (url === null || !/^https?:$/.test(url.protocol))
    throw usageError(
      'the URL of your server is not an http or https URL',
      'Pass one such as localhost:4000/webhooks.',
    );
  return url;
}

/** Sends events to one URL with a webhook's headers, signed as the service signs. */
export class LocalServer {
  // Loaded on demand: importing node:http also loads undici, which takes a quarter of every command's startup time.
  private readonly http: typeof import('node:http') | typeof import('node:https');
  private readonly agent: Agent;

  constructor(
    private readonly url: URL,
    private readonly secret: string,
    private readonly timeoutMs: number,
  ) {
    this.http = process.getBuiltinModule(url.protocol === 'https:' ? 'node:https' : 'node:http');
    this.agent = new this.http.Agent({ keepAlive: true, maxSockets: 1 });
  }

  /** Makes one attempt. A 2xx within the timeout is success. Does not follow redirects. Never throws. */
  async deliver(event: Deliverable): Promise<DeliveryResult> {
    const body = JSON.stringify(event);
    const startedAt = performance.now();
    const outcome = await this.post(body, headersOf(event, signatureHeader(this.secret, body))).catch(
      reasonOf,
    );
    return {
      delivered: /^2\d\d$/.test(outcome),
      outcome,
      latencyMs: Math.round(performance.now() - startedAt),
    };
  }

  close(): void {
    this.agent.destroy();
  }

  private post(body: string, headers: Record<string, string>): Promise<string> {
    return new Promise((resolve, reject) => {
      const call = this.http.request(
        this.url,
        {
          method: 'POST',
          agent: this.agent,
          signal: AbortSignal.timeout(this.timeoutMs),
          headers: { ...headers, 'content-length': String(Buffer.byteLength(body)) },
        },
        (answer) => {
          answer.on('error', () => undefined).resume();
          resolve(String(answer.statusCode));
        },
      );
      call.on('error', reject).end(body);
    });
  }
}

/** Derives the delivery id from the event id, so that all attempts share it. */
function headersOf(event: Deliverable, signature: string): Record<string, string> {
  return {
    'content-type': 'application/json',
    'user-agent': 'partner-esim-service-webhooks/1.0',
    'x-service-signature': signature,
    'x-service-event': event.type,
    'x-service-delivery': `dlv_cli_${event.id.replace(/^evt_/, '')}`,
  };
}

function reasonOf(error: unknown): string {
  const { name, code, message } = error as NodeJS.ErrnoException;
  if (name === 'TimeoutError' || code === 'ABORT_ERR') return 'timeout';
  return code ?? message;
}
