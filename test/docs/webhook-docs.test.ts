import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Ajv2020 } from 'ajv/dist/2020.js';
import * as formats from 'ajv-formats';
import ts from 'typescript';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventSchemaName } from '../../src/apps/openapi-events.js';
import { newId } from '../../src/common/ids.js';
import { loadConfig } from '../../src/config/index.js';
import { EVENT_TYPES, type EventType } from '../../src/events/index.js';
import { verifyWebhookSignature } from '../../src/webhooks/index.js';
import { startTestService, testEnvironment, type TestService } from '../harness/index.js';
import { Page } from './page.js';
import { runProgram } from './program.js';
import { sharedVectors, type SignatureVector, STRICTER_VECTORS } from './signature-vectors.js';
import { VERIFIER_LANGUAGES } from './verifier-programs.js';

const page = new Page('docs/webhooks.md');
const SHARED_VECTORS = sharedVectors();
const RETRIES = new Page('docs/guides/idempotency.md').code('## In code', 'typescript');
const CATCH_UP_HEADING = '## Prove that nothing is missing';
/** `go run` compiles while other tests keep the machine busy. */
const PROGRAM_MS = 240_000;
const TEST_MS = PROGRAM_MS + 15_000;

let service: TestService;
beforeAll(async () => {
  // The loop makes four calls, for three pages and the second poll, and the last one exceeds the limit.
  service = await startTestService({ env: { RATE_LIMIT_BURST: '3', RATE_LIMIT_PER_MINUTE: '6' } });
});
afterAll(() => service.stop());

function verdicts(vectors: readonly SignatureVector[], answers: readonly unknown[]): Record<string, unknown> {
  return Object.fromEntries(vectors.map((vector, index) => [vector.name, answers[index]]));
}

describe('each function that verifies a signature', () => {
  const vectors = [...SHARED_VECTORS, ...STRICTER_VECTORS];
  const expected = verdicts(
    vectors,
    vectors.map((vector) => vector.expected),
  );

  it('is tested with vectors that the service itself agrees with', () => {
    const answers = SHARED_VECTORS.map(({ header, body, secret, now }) =>
      verifyWebhookSignature({
        header: header ?? '',
        body: Buffer.from(body, 'base64'),
        secret,
        ...(now === null ? {} : { nowSeconds: now }),
      }),
    );
    expect(verdicts(SHARED_VECTORS, answers)).toEqual(
      verdicts(
        SHARED_VECTORS,
        SHARED_VECTORS.map((vector) => vector.expected),
      ),
    );
  });

  for (const language of VERIFIER_LANGUAGES) {
    if (language.missing)
      console.warn(`the ${language.name} of docs/webhooks.md is not run: ${language.missing}`);
    it.skipIf(language.missing !== null)(
      `judges every vector like the service, in ${language.name}`,
      async () => {
        const answers = (await runProgram(
          language.program(page),
          language.input?.(vectors) ?? vectors,
          PROGRAM_MS,
        )) as boolean[];
        expect(answers).toHaveLength(vectors.length);
        expect(verdicts(vectors, answers)).toEqual(expected);
      },
      TEST_MS,
    );
  }
});

describe('the loop that reads the feed', () => {
  const MAIN = `
    import { text } from 'node:stream/consumers';
    import { catchUp } from './catch-up.mts';

    const { baseUrl, key, known } = JSON.parse(await text(process.stdin));
    const statuses = [];
    const { fetch } = globalThis;
    globalThis.fetch = async (...call) => {
      const response = await fetch(...call);
      statuses.push(response.status);
      return response;
    };
    const ids = new Set(known);
    const handled = [];
    let cursor = null;
    const inbox = {
      loadCursor: async () => cursor,
      saveCursor: async (next) => void (cursor = next),
      handleOnce: async (event) => {
        handled.push(event);
        return ids.size < ids.add(event.id).size;
      },
    };
    const missed = [await catchUp(baseUrl, key, inbox), await catchUp(baseUrl, key, inbox)];
    console.log(JSON.stringify({ missed, handled, statuses }));
  `;
  const EVENTS = 205;
  /** Inserts events one second apart, as the recorder writes them. */
  async function insertEvents(partnerId: string, mode: string, count: number): Promise<unknown[]> {
    const envelopes = Array.from({ length: count }, (_, index) => ({
      id: newId('evt'),
      type: 'esim.activated',
      created_at: new Date(1_795_080_600_000 + index * 1_000).toISOString(),
      data: { esim_id: newId('esim'), order_id: newId('ord'), iccid: '8900099870805937811' },
    }));
    await service.database.pool.query(
      `INSERT INTO events (id, partner_id, mode, type, body, created_at)
       SELECT body::json->>'id', $1, $2, body::json->>'type', body, (body::json->>'created_at')::timestamptz
       FROM unnest($3::text[]) AS body`,
      [partnerId, mode, envelopes.map((envelope) => JSON.stringify(envelope))],
    );
    return envelopes;
  }

  it(
    'finds every event once and in order across pages and the rate limit, and counts the missed ones',
    async () => {
      const partner = await service.createPartner();
      const events = (await insertEvents(partner.id, 'sandbox', EVENTS)) as { id: string }[];
      await insertEvents(partner.id, 'live', 3);
      const known = events.filter((_, index) => index % 41 !== 0).map((event) => event.id);
      const program = {
        files: { 'catch-up.mts': page.code(CATCH_UP_HEADING, 'typescript'), 'main.mjs': MAIN },
        command: [process.execPath, '--no-warnings', 'main.mjs'],
      } as const;
      const input = { baseUrl: service.process.api?.url, key: partner.sandboxKey, known };
      const seen = await runProgram(program, input, PROGRAM_MS);
      expect(seen).toEqual({
        missed: [EVENTS - known.length, 0],
        handled: events,
        statuses: [200, 200, 200, 429, 200],
      });
    },
    TEST_MS,
  );
});

describe('the retries in the idempotency guide', () => {
  const MAIN = `
    import { text } from 'node:stream/consumers';
    import { placeOrder } from './place-order.mts';
    const { baseUrl, key, intent } = JSON.parse(await text(process.stdin));
    console.log(JSON.stringify(await placeOrder(baseUrl, key, intent)));
  `;
  let proxy: Server;
  let calls = 0;

  beforeAll(async () => {
    // The first response is lost after the order is committed, the second is a 503, and the third arrives.
    proxy = createServer((request, response) => {
      void (async () => {
        const body = Buffer.concat(await request.toArray());
        const headers = Object.fromEntries(
          ['authorization', 'content-type', 'idempotency-key'].map((name) => [
            name,
            String(request.headers[name]),
          ]),
        );
        calls += 1;
        const answer = await fetch(`${service.process.api?.url}${request.url}`, {
          method: 'POST',
          headers,
          body,
        });
        const text = await answer.text();
        if (calls === 1) return void request.socket.destroy();
        if (calls === 2)
          return void response.writeHead(503).end('{"code":"service_unavailable","retryable":true}');
        response.writeHead(answer.status, { 'content-type': 'application/json' }).end(text);
      })().catch(() => response.destroy());
    }).listen(0, '127.0.0.1');
    await once(proxy, 'listening');
  });
  afterAll(() => void proxy.close());

  it('buys once, whichever response is lost', async () => {
    const partner = await service.createPartner();
    const intent = {
      idempotencyKey: 'guide-intent-1',
      body: { package_id: 'pkg_fr_1gb_7d', reference: 'guide-1' },
    };
    const baseUrl = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
    const order = await runProgram(
      {
        files: { 'place-order.mts': RETRIES, 'main.mjs': MAIN },
        command: [process.execPath, '--no-warnings', 'main.mjs'],
      },
      { baseUrl, key: partner.sandboxKey, intent },
      PROGRAM_MS,
    );
    expect(calls).toBe(3);
    const { data } = (await service.admin.get(`/internal/v1/partners/${partner.id}/orders`)).body;
    expect(data.map(({ id }: { id: string }) => id)).toEqual([(order as { id: string }).id]);
  });
});

it(
  'compiles the TypeScript of the pages under strict settings',
  () => {
    const verifier = readFileSync('docs/guides/verifiers/verify-webhook-signature.ts', 'utf8');
    const server = new Page('docs/guides/quick-start.md')
      .code('## 5. Receive webhooks', 'typescript')
      .replace(/^import .*verify-webhook-signature.*$/m, () => verifier);
    const sources = new Map([
      ['/docs/verify.mts', page.code('### TypeScript', 'typescript')],
      ['/docs/catch-up.mts', page.code(CATCH_UP_HEADING, 'typescript')],
      ['/docs/place-order.mts', RETRIES],
      ['/docs/server.mts', server],
    ]);
    expect(complaintsAbout(sources)).toBe('');
  },
  TEST_MS,
);

describe('the webhook page', () => {
  const openApi = JSON.parse(readFileSync('docs/openapi/partner.json', 'utf8'), closed) as object;
  const ajv = new Ajv2020({ strict: false });
  formats.default.default(ajv);
  ajv.addSchema(openApi, 'document', false, false);

  it.each(EVENT_TYPES)('shows %s with exactly the fields of the contract', (type: EventType) => {
    const example = JSON.parse(page.code(`### ${type}`, 'json')) as { type: string };
    const validate = ajv.compile({ $ref: `document#/components/schemas/${eventSchemaName(type)}` });
    expect(validate(example) ? '' : ajv.errorsText(validate.errors)).toBe('');
    expect(example.type).toBe(type);
    expect(Object.keys(example)).toEqual(['id', 'type', 'created_at', 'data']);
  });

  it('lists the configured retry schedule, with the times since the first attempt', () => {
    const { retryDelaysMs, timeoutMs, blockMs, blocksBeforeDisable } = loadConfig(
      testEnvironment('postgres://127.0.0.1/none'),
    ).webhooks;
    const startsAfter = (attemptMs: number): string[] => {
      let atMs = 0;
      return ['0:00', ...retryDelaysMs.map((delayMs) => clockText((atMs += attemptMs + delayMs)))];
    };
    const rows = page.table('## Retries');
    expect(rows.map(([attempt]) => attempt)).toEqual(['1', '2', '3', '4', '5', '6']);
    expect(rows.map(([, , refused]) => refused)).toEqual(startsAfter(0));
    expect(rows.map(([, , , timedOut]) => timedOut)).toEqual(startsAfter(timeoutMs));
    expect({ timeoutMs, blockMs, blocksBeforeDisable }).toEqual({
      timeoutMs: 60_000,
      blockMs: 60_000,
      blocksBeforeDisable: 5,
    });
  });
});

/** A JSON reviver that closes every object schema to unknown fields. */
function closed(_key: string, value: unknown): unknown {
  const isObject = typeof value === 'object' && value !== null && 'properties' in value;
  return isObject ? { ...value, additionalProperties: false } : value;
}

function clockText(ms: number): string {
  const seconds = ms / 1_000;
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
}

/** The compiler's diagnostics for in-memory sources. */
function complaintsAbout(sources: ReadonlyMap<string, string>): string {
  const options: ts.CompilerOptions = {
    strict: true,
    noUncheckedIndexedAccess: true,
    exactOptionalPropertyTypes: true,
    target: ts.ScriptTarget.ES2022,
    module: ts.ModuleKind.NodeNext,
    lib: ['lib.es2022.d.ts'],
    types: ['node'],
    typeRoots: [`${process.cwd()}/node_modules/@types`],
    skipLibCheck: true,
    noEmit: true,
  };
  const host = ts.createCompilerHost(options);
  const readFile = host.readFile.bind(host);
  const fileExists = host.fileExists.bind(host);
  host.readFile = (name) => sources.get(name) ?? readFile(name);
  host.fileExists = (name) => sources.has(name) || fileExists(name);
  const getFile = host.getSourceFile.bind(host);
  host.getSourceFile = (name, target, ...rest) => {
    const text = sources.get(name);
    return text === undefined ? getFile(name, target, ...rest) : ts.createSourceFile(name, text, target);
  };
  const program = ts.createProgram([...sources.keys()], options, host);
  return ts.formatDiagnostics(ts.getPreEmitDiagnostics(program), host);
}
