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
import { Allowances } from '../../infra/allowances.js';
import { MeteredConnection } from '../../infra/network/metered-connection.js';
import { OUTGOING_TLS } from '../../infra/network/outgoing-tls.js';
import type { PhaseClock } from './attempt-result.js';

/** The attempt for which a connection is made. */
export interface Dialing {
  readonly clock: PhaseClock;
  readonly signal: AbortSignal;
  /** The partner and mode that pay for what the receiver makes us compute. */
  readonly owner: string;
}

/** The options of a request of `WebhookAgents`: Node hands them to `createConnection` as they are. */
export interface DialingOptions extends RequestOptions {
  readonly dialing: Dialing;
}

/** Connects to a host name or literal; the phases `dns` and `connect` are its to time. */
export type Dial = (hostname: string, port: number, dialing: Dialing) => Promise<Socket>;

type CreateOptions = ClientRequestArgs & Partial<DialingOptions>;
type Created = (error: Error | null, stream: Duplex) => void;

/** The work on one slice of TLS that is usual: a whole handshake costs 3 to 6 ms. */
const USUAL_CPU_MS = 20;
/** Milliseconds of CPU beyond that for the receivers of a partner and mode: at once, and 2 % of the time. */
const TLS_ALLOWANCE = { burst: 500, perSecond: 20 };

/** The receivers of the same partner have used up its CPU time: their handshakes are far more costly than usual. */
export class TlsTooCostly extends Error {
  readonly code = 'TLS_TOO_COSTLY';
}

/** Keep-alive connections by http and https. */
export class WebhookAgents {
  private readonly http: HttpAgent;
  private readonly https: HttpsAgent;

  constructor(dial: Dial, options: AgentOptions) {
    this.http = new DialingHttpAgent(dial, options);
    this.https = new DialingHttpsAgent(dial, options);
  }

  /** @param protocol as a URL has it */
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

/** Meters what each receiver makes TLS compute. */
class DialingHttpsAgent extends HttpsAgent {
  private readonly cpu = new Allowances(TLS_ALLOWANCE);
  private readonly connections = new WeakMap<Duplex, MeteredConnection>();

  constructor(
    private readonly dial: Dial,
    options: AgentOptions,
  ) {
    // Said, so that NODE_TLS_REJECT_UNAUTHORIZED=0 does not turn it off.
    super({ ...options, ...OUTGOING_TLS, rejectUnauthorized: true });
  }

  override createConnection(options: CreateOptions, created?: Created): undefined {
    this.dial(...targetOf(options)).then(
      (socket) => created!(null, this.secure(socket, options)),
      (error: Error) => created!(error, undefined as never),
    );
  }

  override reuseSocket(socket: Duplex, request: ClientRequest): void {
    super.reuseSocket(socket, request);
    this.connections.get(socket)?.renewAllowance();
  }

  private secure(socket: Socket, options: CreateOptions): TLSSocket {
    const { owner, clock } = options.dialing!;
    const connection = new MeteredConnection(socket);
    const secured = super.createConnection({ ...options, socket: connection } as CreateOptions) as TLSSocket;
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
    clock.enter('tls');
    return secured;
  }
}

function targetOf({ host, port, dialing }: CreateOptions): [string, number, Dialing] {
  return [(host ?? '').replace(/^\[|\]$/g, ''), Number(port), dialing!];
}
