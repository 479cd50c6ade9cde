import { randomUUID } from 'node:crypto';
import { Agent, request } from 'node:http';
import { Pool } from 'pg';
import { newId, ulid } from '../../src/common/ids.js';
import { clientConfig, type DatabaseClient } from '../../src/infra/database/index.js';
import { signWebhook } from '../../src/webhooks/index.js';
import { type CapturedStatement, MARK, type Owner, withoutPrefix } from './captured-order.js';
import { serveParent } from './child.js';
import { closedLoop, KeepAliveConnection, type LoadReport, type Times } from './load.js';

export interface CallPlan extends Times {
  readonly baseUrl: string;
  readonly path: string;
  /** API keys, used in turn. */
  readonly keys: readonly string[];
  /** A JSON body. If present, the calls are POSTs, each with a new Idempotency-Key. */
  readonly body?: string;
  readonly connections: number;
  readonly expectedStatus: number;
}

export interface TransactionPlan extends Times {
  readonly databaseUrl: string;
  readonly statements: readonly CapturedStatement[];
  /** Used in turn, like the keys of a `CallPlan`. */
  readonly owners: readonly Owner[];
  readonly poolMax: number;
  readonly concurrency: number;
}

export interface PostPlan extends Times {
  readonly urls: readonly string[];
  readonly callersPerUrl: number;
  readonly secret: string;
  readonly body: string;
}

const api = { calls, transactions, posts };
export type LoadApi = typeof api;
serveParent(api);

/**
 * Sends HTTP calls over keep-alive connections.
 * @throws Error for an unexpected status
 */
async function calls(plan: CallPlan): Promise<LoadReport> {
  const nextRequest = requestsOf(plan);
  const connections = await Promise.all(
    Array.from({ length: plan.connections }, () => KeepAliveConnection.open(plan.baseUrl)),
  );
  const callers = connections.map((connection) => async () => {
    const status = await connection.call(nextRequest());
    if (status !== plan.expectedStatus) throw new Error(`${plan.path}: ${status}`);
  });
  try {
    return await closedLoop(callers, plan);
  } finally {
    for (const connection of connections) connection.close();
  }
}

/** Builds the bytes of a GET once per key. A POST needs new bytes for its Idempotency-Key. */
function requestsOf({ baseUrl, path, keys, body }: CallPlan): () => string | Buffer {
  const common = `host: ${new URL(baseUrl).host}\r\naccept: application/json\r\nuser-agent: bench\r\n`;
  let turn = 0;
  const nextIndex = (): number => (turn = (turn + 1) % keys.length);
  const heads = keys.map(
    (key) => `${body ? 'POST' : 'GET'} ${path} HTTP/1.1\r\n${common}authorization: Bearer ${key}\r\n`,
  );
  if (body === undefined) {
    const requests = heads.map((head) => Buffer.from(`${head}\r\n`));
    return () => requests[nextIndex()]!;
  }
  const typed = `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n`;
  return () => `${heads[nextIndex()]!}${typed}idempotency-key: ${randomUUID()}\r\n\r\n${body}`;
}

const pools = new Map<string, Pool>();

/** Repeats the transaction of a POST through `pg` alone, with prepared statements pipelined in one round trip. */
async function transactions(plan: TransactionPlan): Promise<LoadReport> {
  const { databaseUrl: url, poolMax, concurrency } = plan;
  const config = clientConfig({ url, applicationName: 'bench', connectTimeoutMs: 10_000 });
  const pool = pools.get(url) ?? new Pool({ ...config, max: poolMax, pipeline: true });
  pools.set(url, pool);
  const owners = plan.owners.map(({ partnerId, keyId }) => ({
    partnerId: withoutPrefix(partnerId),
    keyId: withoutPrefix(keyId),
  }));
  const statements = plan.statements.map(({ name, text, parameters }) => ({
    query: { text, ...(name === null ? {} : { name }) },
    templates: parameters.map((parameter) => parameter?.split(MARK) ?? null),
  }));
  let turn = 0;
  const repeat = async (): Promise<void> => {
    const values: Record<string, string> = { ...owners[turn++ % owners.length]! };
    const client = await pool.connect();
    try {
      (client as unknown as DatabaseClient).joinWrites();
      await Promise.all(
        statements.map(({ query, templates }) =>
          client.query({ ...query, values: templates.map((template) => template && fill(template, values)) }),
        ),
      );
    } finally {
      client.release();
    }
  };
  const report = await closedLoop(
    Array.from({ length: concurrency }, () => repeat),
    plan,
  );
  // This process is the one under test, not a load generator.
  return { ...report, generatorCpu: 0 };
}

/** Every second part names a placeholder: an id of the owner, or an id that is new in each transaction. */
function fill(template: readonly string[], values: Record<string, string>): string {
  return template
    .map((part, nth) =>
      nth % 2 === 0 ? part : (values[part] ??= part.startsWith('ulid') ? ulid() : randomUUID()),
    )
    .join('');
}

/** The same settings as the service's webhook sender. */
const agent = new Agent({ keepAlive: true, timeout: 4_000, maxFreeSockets: 256 });

/**
 * Sends signed POSTs with Node's client alone, without database or log.
 * @throws Error for a status other than 200
 */
async function posts({ urls, callersPerUrl, secret, body, ...times }: PostPlan): Promise<LoadReport> {
  const bytes = Buffer.from(body);
  const callers = urls.flatMap((url) =>
    Array.from({ length: callersPerUrl }, () => () => postSigned(url, bytes, secret)),
  );
  return { ...(await closedLoop(callers, times)), generatorCpu: 0 };
}

function postSigned(url: string, body: Buffer, secret: string): Promise<void> {
  const timestampSeconds = Math.floor(Date.now() / 1_000);
  const headers = {
    'Content-Type': 'application/json',
    'User-Agent': 'bench',
    'X-Service-Signature': signWebhook({ timestampSeconds, body, secrets: [secret] }),
    'X-Service-Event': 'esim.activated',
    'X-Service-Delivery': newId('dlv'),
  };
  return new Promise((resolve, reject) => {
    const sent = request(new URL(url), { method: 'POST', headers, agent });
    sent.on('response', (response) => {
      response.resume();
      if (response.statusCode === 200) response.on('end', resolve);
      else reject(new Error(`${url}: ${response.statusCode}`));
    });
    sent.on('error', reject);
    sent.end(body);
  });
}
