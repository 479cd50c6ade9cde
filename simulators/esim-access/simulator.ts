import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { Callbacks } from './callbacks.ts';
import { defaultCatalog } from './catalog.ts';
import { applyControl, type ControlCommand, type SimulatorState } from './control.ts';
import { garbageBody, noFaults, takeOne } from './faults.ts';
import { Ledger } from './ledger.ts';
import { OPERATIONS } from './operations.ts';
import type { Fields, Shop } from './purchasing.ts';
import { checkSignature, type Credentials, errorBody, successBody, WireError } from './wire.ts';

export interface SimulatorOptions {
  readonly port?: number;
  readonly host?: string;
  /** File that keeps purchases over a restart. */
  readonly stateFile?: string | null;
  readonly credentials?: Credentials;
  /** The contract's limit is 8; null disables it. */
  readonly requestsPerSecond?: number | null;
}

export interface EsimAccessSimulator {
  readonly url: string;
  readonly port: number;
  control(command: ControlCommand): void;
  state(): SimulatorState;
  close(): Promise<void>;
}

const OPEN_API = '/api/v1/open/';
export const SIMULATOR_CREDENTIALS: Credentials = { accessCode: 'sim-access', secretKey: 'sim-signing' };

/** Starts the simulator of eSIM Access (docs/providers.md) in this process. */
export async function startEsimAccessSimulator(options: SimulatorOptions = {}): Promise<EsimAccessSimulator> {
  const simulator = new Simulator(options);
  await simulator.listen(options.port ?? 0, options.host ?? '127.0.0.1');
  return simulator;
}

/** Calls whose connection `dropBeforeCommit` and `dropAfterCommit` cut. */
const DROPPED: ReadonlySet<string> = new Set([
  ...['esim/order', 'esim/topup', 'esim/suspend', 'esim/unsuspend', 'esim/revoke'],
]);

class Simulator implements EsimAccessSimulator {
  private readonly server: Server;
  private readonly credentials: Credentials;
  private readonly shop: Shop;
  private readonly callbacks = new Callbacks();
  private readonly calls: Record<string, number> = {};
  private arrivals: number[] = [];
  private busiestSecond = 0;

  constructor(options: SimulatorOptions) {
    this.credentials = options.credentials ?? SIMULATOR_CREDENTIALS;
    this.shop = {
      ledger: new Ledger(options.stateFile ?? null),
      catalog: defaultCatalog(),
      faults: noFaults(options.requestsPerSecond === undefined ? 8 : options.requestsPerSecond),
      allocating: new Map(),
      hidden: new Map(),
      repeated: new Set(),
      webhookUrl: null,
    };
    this.server = createServer((request, response) => {
      this.handle(request, response).catch(() => response.destroy());
    });
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  listen(port: number, host: string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.server.once('error', reject);
      this.server.listen(port, host, () => resolve());
    });
  }

  control(command: ControlCommand): void {
    applyControl(this.shop, this.callbacks, command);
  }

  state(): SimulatorState {
    const { ledger, repeated } = this.shop;
    return {
      ...ledger.counts(),
      days: ledger.days(),
      topups: Object.fromEntries(ledger.topups),
      topupsOfEsims: Object.fromEntries(ledger.topupsOfEsims),
      repeated: [...repeated],
      calls: { ...this.calls },
      busiestSecond: this.busiestSecond,
      balance: ledger.balance,
      esims: ledger.esims.size,
    };
  }

  close(): Promise<void> {
    this.callbacks.stop();
    return new Promise((resolve) => {
      this.server.close(() => resolve());
      this.server.closeAllConnections();
    });
  }

  private async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await readBody(request);
    const path = (request.url ?? '').split('?')[0]!;
    if (path === '/__state') return answer(response, 200, JSON.stringify(this.state()));
    if (path === '/__control') {
      this.control(JSON.parse(body.toString()) as ControlCommand);
      return answer(response, 200, '{}');
    }
    await this.serve(request, response, path, body);
  }

  private async serve(
    request: IncomingMessage,
    response: ServerResponse,
    path: string,
    body: Buffer,
  ): Promise<void> {
    const { faults } = this.shop;
    const name = path.startsWith(OPEN_API) ? path.slice(OPEN_API.length) : '';
    this.calls[name] = (this.calls[name] ?? 0) + 1;
    const overLimit = this.countArrival();
    if (takeOne(faults, 'slow')) await delay(faults.slowMs);
    if (takeOne(faults, 'garbage')) return answerGarbage(response, faults.garbageKind);
    if (overLimit || takeOne(faults, 'busy'))
      return answer(response, 200, errorBody('900001', 'the system is busy, please try again later', faults));
    const isChange = DROPPED.has(name);
    if (isChange && takeOne(faults, 'dropBeforeCommit')) return void response.destroy();
    const { text, done } = await this.perform(request, name, body);
    if (isChange && takeOne(faults, 'dropAfterCommit')) return void response.destroy();
    if (name === 'esim/topup' && done && takeOne(faults.topups, 'lostAnswer')) return void response.destroy();
    answer(response, 200, text);
  }

  private async perform(request: IncomingMessage, name: string, body: Buffer): Promise<Performed> {
    try {
      if (request.method !== 'POST') throw new WireError('000103', 'method');
      checkSignature(request.headers, body, this.credentials);
      const operation = OPERATIONS.get(name);
      if (!operation) throw new WireError('000103', 'no such operation');
      this.refuseIfTold(name);
      const fields = parseFields(body);
      const obj = operation(this.shop, fields);
      await this.afterwards(name, fields, obj as Fields);
      return { text: successBody(obj), done: true };
    } catch (error) {
      const { code, message } = error instanceof WireError ? error : new WireError('000001', 'server error');
      return { text: errorBody(code, message, this.shop.faults), done: false };
    }
  }

  private async afterwards(name: string, fields: Fields, obj: Fields): Promise<void> {
    if (name === 'webhook/save') {
      const url = fields.webhook as string;
      if (!(await this.callbacks.checkHealth(url)))
        throw new WireError('200008', 'the webhook does not answer 200');
      this.callbacks.habits.url = url;
    }
    if (name === 'esim/order') this.callbacks.notify('ORDER_STATUS', { ...obj, orderStatus: 'GOT_RESOURCE' });
    if (name === 'esim/cancel') {
      const esim = this.shop.ledger.esims.get(fields.esimTranNo as string);
      if (!esim) return;
      const { iccid, orderNo, esimTranNo, transactionId, esimStatus, smdpStatus } = esim;
      const content = { iccid, orderNo, esimTranNo, transactionId, esimStatus, smdpStatus };
      this.callbacks.notify('ESIM_STATUS', content);
    }
  }

  private refuseIfTold(name: string): void {
    const { refuse } = this.shop.faults;
    if (refuse?.path !== name) return;
    if (refuse.after > 0) {
      refuse.after--;
      return;
    }
    if (refuse.count-- > 0) throw new WireError(refuse.code, 'told to refuse');
  }

  /** Whether more calls than allowed have arrived within the last second. */
  private countArrival(): boolean {
    const now = performance.now();
    this.arrivals = this.arrivals.filter((at) => now - at < 1_000);
    this.arrivals.push(now);
    this.busiestSecond = Math.max(this.busiestSecond, this.arrivals.length);
    const limit = this.shop.faults.requestsPerSecond;
    return limit !== null && this.arrivals.length > limit;
  }
}

interface Performed {
  readonly text: string;
  /** Whether it took effect. */
  readonly done: boolean;
}

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

function parseFields(body: Buffer): Fields {
  try {
    const value: unknown = body.length === 0 ? {} : JSON.parse(body.toString('utf8'));
    if (value !== null && typeof value === 'object' && !Array.isArray(value)) return value as Fields;
  } catch {
    // Falls through to the refusal.
  }
  throw new WireError('000104', 'request body is not JSON');
}

function answer(response: ServerResponse, status: number, body: string | Buffer): void {
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
  });
  response.end(body);
}

function answerGarbage(response: ServerResponse, kind: Parameters<typeof garbageBody>[0]): void {
  const body = garbageBody(kind);
  if (kind !== 'cut') return answer(response, kind === 'http_500' ? 500 : 200, body);
  // Announces more bytes than it sends.
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': 4_096 });
  response.write(body, () => response.destroy());
}
