import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { sendBadAnswer, sendError, sendJson, sendReply, withNumericCodes } from './answers.ts';
import { type ControlBody, type Faults, noFaults, strikes } from './faults.ts';
import { Ledger, Refusal } from './ledger.ts';
import { answerApi, applyControl, type Call, type Reply } from './routes.ts';
import { type SimulatorState, stateOf } from './state.ts';
import { WebhookSender } from './webhooks.ts';

export type { ControlBody } from './faults.ts';
export type { SimulatorState } from './state.ts';

/** Accepted when no other key is configured; valid for a simulator only. */
export const SIMULATOR_API_KEY = ['sand', 'zendit', 'simulator'].join('_');

const API_PREFIX = '/v1';
const MAX_BODY_BYTES = 65_536;
const WINDOW_MS = 1_000;

export interface ZenditSimulatorOptions {
  readonly port?: number;
  readonly host?: string;
  readonly apiKey?: string;
  /** Append-only file that keeps purchases over a restart. */
  readonly statePath?: string | null;
}

export interface ZenditSimulator {
  readonly port: number;
  /** Includes `/v1`, as in `ZENDIT_BASE_URL`. */
  readonly baseUrl: string;
  readonly apiKey: string;
  control(body: ControlBody): void;
  state(): SimulatorState;
  close(): Promise<void>;
}

/** Starts the simulator, on 127.0.0.1 and a free port by default. */
export async function startZenditSimulator(options: ZenditSimulatorOptions = {}): Promise<ZenditSimulator> {
  const api = new SimulatedApi(options);
  const server = createServer((request, response) => void api.handle(request, response));
  const host = options.host ?? '127.0.0.1';
  server.listen(options.port ?? 0, host);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    port,
    baseUrl: `http://${host}:${port}${API_PREFIX}`,
    apiKey: api.apiKey,
    control: (body) => applyControl(api.ledger, api.faults, body),
    state: () => api.state(),
    close: async () => {
      api.stop();
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

class SimulatedApi {
  readonly apiKey: string;
  readonly faults: Faults = noFaults();
  readonly ledger: Ledger;
  private readonly webhooks = new WebhookSender(this.faults);
  private readonly calls: Record<string, number> = {};
  private readonly recentMs: number[] = [];
  private refusedForPace = 0;

  constructor(options: ZenditSimulatorOptions) {
    this.apiKey = options.apiKey ?? SIMULATOR_API_KEY;
    this.ledger = new Ledger(this.faults, options.statePath ?? null, (purchase) =>
      this.webhooks.announce(purchase),
    );
  }

  state(): SimulatorState {
    return stateOf(this.ledger, {
      calls: { ...this.calls },
      refusedForPace: this.refusedForPace,
      webhooksSent: this.webhooks.sent,
    });
  }

  stop(): void {
    this.webhooks.stop();
  }

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const call = await readCall(request);
      if (call.path.startsWith('/__')) return this.handleControl(call, response);
      await this.handleApi(call, request, response);
    } catch (error) {
      if (error instanceof Refusal) return sendError(response, error.status, error.body);
      sendError(response, 500, { errorCode: 'INTERNAL', message: String(error), fields: {} });
    }
  }

  private handleControl(call: Call, response: ServerResponse): void {
    if (call.path === '/__state') return sendJson(response, 200, this.state());
    if (call.path !== '/__control' || call.method !== 'POST')
      return sendError(response, 404, { errorCode: 'NOT_FOUND', message: 'not found', fields: {} });
    applyControl(this.ledger, this.faults, call.body);
    sendJson(response, 200, this.faults);
  }

  private async handleApi(call: Call, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { faults } = this;
    this.count(call);
    if (request.headers.authorization !== `Bearer ${this.apiKey}`)
      return sendError(response, 401, {
        errorCode: 'NOT_AUTHORIZED',
        message: 'unknown API key',
        fields: {},
      });
    if (strikes(faults, 'busy') || this.isTooFast()) {
      this.refusedForPace += 1;
      const body = { errorCode: 'TOO_MANY_REQUESTS', message: 'slow down', fields: {} };
      return sendError(response, 429, body, { 'retry-after': '1' });
    }
    if (strikes(faults, 'unavailable')) return sendUnavailable(response);
    if (call.method === 'POST' && strikes(faults, 'dropBeforeCommit')) return void response.destroy();
    if (!faults.badAnswersTakeEffect && strikes(faults, 'badAnswers'))
      return sendBadAnswer(response, faults.badAnswer);
    const reply = this.act(call);
    if (faults.slowMs > 0) await sleep(faults.slowMs);
    if (call.method === 'POST' && strikes(faults, 'dropAfterCommit')) return void response.destroy();
    if (call.method === 'POST' && strikes(faults, 'unavailableAfterCommit')) return sendUnavailable(response);
    if (strikes(faults, 'badAnswers')) return sendBadAnswer(response, faults.badAnswer);
    sendReply(response, reply.status, reply.body);
  }

  private act(call: Call): Reply {
    try {
      const reply = answerApi(this.ledger, this.faults, {
        ...call,
        path: call.path.slice(API_PREFIX.length),
      });
      if (call.method === 'POST') this.finishInTime(call);
      return { ...reply, body: this.coded(reply.body) };
    } catch (error) {
      if (error instanceof Refusal) return { status: error.status, body: this.coded(error.body) };
      throw error;
    }
  }

  private coded(body: unknown): unknown {
    return this.faults.numericCodes ? withNumericCodes(body) : body;
  }

  /** With `finishAfterMs`, a purchase ends and its webhook leaves without any query. */
  private finishInTime(call: Call): void {
    const { finishAfterMs } = this.faults;
    const { transactionId } = call.body;
    if (finishAfterMs === null || typeof transactionId !== 'string') return;
    setTimeout(() => this.ledger.finish(transactionId), finishAfterMs).unref();
  }

  private count(call: Call): void {
    const route = `${call.method} ${call.path.slice(API_PREFIX.length).split('/').slice(0, 3).join('/')}`;
    this.calls[route] = (this.calls[route] ?? 0) + 1;
  }

  private isTooFast(): boolean {
    const { maxPerSecond } = this.faults;
    const nowMs = performance.now();
    while (this.recentMs.length > 0 && this.recentMs[0]! <= nowMs - WINDOW_MS) this.recentMs.shift();
    if (maxPerSecond !== null && this.recentMs.length >= maxPerSecond) return true;
    this.recentMs.push(nowMs);
    return false;
  }
}

function sendUnavailable(response: ServerResponse): void {
  sendError(response, 503, { errorCode: 'SYSTEM_UNAVAILABLE', message: 'try again later', fields: {} });
}

/** @throws Refusal 400 for a body that is not a JSON object, 413 for a long one */
async function readCall(request: IncomingMessage): Promise<Call> {
  const url = new URL(request.url ?? '/', 'http://simulator');
  let text = '';
  for await (const chunk of request.setEncoding('utf8')) {
    text += chunk as string;
    if (text.length > MAX_BODY_BYTES)
      throw new Refusal(413, { errorCode: 'INVALID_REQUEST', message: 'too long', fields: {} });
  }
  return {
    method: request.method ?? 'GET',
    path: url.pathname,
    query: url.searchParams,
    accept: request.headers.accept ?? '',
    body: parseBody(text),
  };
}

function parseBody(text: string): Readonly<Record<string, unknown>> {
  if (text === '') return {};
  try {
    const body: unknown = JSON.parse(text);
    if (typeof body === 'object' && body !== null) return body as Record<string, unknown>;
  } catch {
    // Answered below.
  }
  throw new Refusal(400, {
    errorCode: 'INVALID_REQUEST',
    message: 'the body must be a JSON object',
    fields: {},
  });
}
