import {
  Agent as HttpAgent,
  type AgentOptions,
  type ClientRequest,
  type ClientRequestArgs,
  type RequestOptions,
} from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import type { Allowances } from '../../infra/allowances.js';
import { MeteredConnection } from '../../infra/network/metered-connection.js';
import { OUTGOING_TLS } from '../../infra/network/outgoing-tls.js';
import type { PhaseClock } from './attempt-result.js';

/** The attempt that needs a connection. */
export interface Dialing {
  readonly clock: PhaseClock;
  readonly signal: AbortSignal;
  /** The partner and mode whose allowance pays for TLS. */
  readonly owner: string;
}

/** Request options for `WebhookAgents`. Node passes them to `createConnection` unchanged. */
export interface DialingOptions extends RequestOptions {
  readonly dialing: Dialing;
}

/** Connects to a host name or literal, and measures the phases `dns` and `connect`. */
export type Dial = (hostname: string, port: number, dialing: Dialing) => Promise<Socket>;

type CreateOptions = ClientRequestArgs & Partial<DialingOptions>;
type Created = (error: Error | null, stream: Duplex) => void;

/** A TLS slice that takes no more CPU time than this is not charged; a usual handshake takes 3 to 6 ms in total. */
const USUAL_CPU_MS = 20;
/** CPU milliseconds of costly slices per partner and mode: 500 at once, then 2 % of the time. */
export const TLS_ALLOWANCE = { burst: 500, perSecond: 20 };

/** The partner's receivers have used up its CPU allowance with costly handshakes. */
export class TlsTooCostly extends Error {
  readonly code = 'TLS_TOO_COSTLY';
}

/** Keep-alive connections by http and https. */
export class WebhookAgents {
  private readonly http: HttpAgent;
  private readonly https: HttpsAgent;

  /** @param cpu milliseconds that the TLS of each owner's receivers may take */
  constructor(dial: Dial, options: AgentOptions, cpu: Allowances) {
    this.http = new DialingHttpAgent(dial, options);
    this.https = new DialingHttpsAgent(dial, options, cpu);
  }

  /** @param protocol in URL form, such as `https:` */
  of(protocol: string): HttpAgent {
    return protocol === 'https:' ? this.https : this.http;
  }

  destroy(): void {
    this.http.destroy();
    this.https.destroy();
  }
}

class DialingHttpAgent extends HttpAgent {
  constructor(
    private readonly dial: Dial,
    options: AgentOptions,
  ) {
    super(options);
  }

  override createConnection(options: CreateOptions, created?: Created): undefined {
    this.dial(...targetOf(options)).then(
      (socket) => created!(null, socket),
      (error: Error) => created!(error, undefined as never),
    );
  }
}

/** Meters every receiver's TLS. */
class DialingHttpsAgent extends HttpsAgent {
  private readonly connections = new WeakMap<Duplex, MeteredConnection>();

  constructor(
    private readonly dial: Dial,
    options: AgentOptions,
    private readonly cpu: Allowances,
  ) {
    // Explicit, so that NODE_TLS_REJECT_UNAUTHORIZED=0 does not disable it.
    super({ ...options, ...OUTGOING_TLS, rejectUnauthorized: true });
  }

  override createConnection(options: CreateOptions, created?: Created): undefined {
    this.dial(...targetOf(options))
      .then((socket) => this.secure(socket, options))
      .then(
        (secured) => created!(null, secured),
        (error: Error) => created!(error, undefined as never),
      );
  }

  override reuseSocket(socket: Duplex, request: ClientRequest): void {
    super.reuseSocket(socket, request);
    this.connections.get(socket)?.renewAllowance();
  }

  /** @throws Error when OpenSSL refuses the options; the connection is then closed */
  private secure(socket: Socket, options: CreateOptions): TLSSocket {
    const { owner, clock } = options.dialing!;
    clock.enter('tls');
    const connection = new MeteredConnection(socket);
    let secured: TLSSocket;
    try {
      secured = super.createConnection({ ...options, socket: connection } as CreateOptions) as TLSSocket;
    } catch (error) {
      connection.destroy();
      throw error;
    }
    this.connections.set(secured, connection);
    let handshaking = true;
    connection.measure({
      dataBytes: () => secured.bytesRead,
      assertMayGoOn: () => {
        if (handshaking && this.cpu.left(owner) < 0) throw new TlsTooCostly();
      },
      spent: (cpuMs) => {
        if (cpuMs > USUAL_CPU_MS) this.cpu.spend(owner, cpuMs);
      },
    });
    secured.once('secureConnect', () => {
      handshaking = false;
      connection.renewAllowance();
      clock.enter(null);
    });
    return secured;
  }
}

function targetOf({ host, port, dialing }: CreateOptions): [string, number, Dialing] {
  return [(host ?? '').replace(/^\[|\]$/g, ''), Number(port), dialing!];
}
