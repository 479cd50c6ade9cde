import { readdirSync, readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ERROR_CATALOGUE, ERROR_CODES } from '../../src/common/errors/index.js';
import { startTestService, type TestPartner, type TestService } from '../harness/index.js';
import { complaintsAbout } from './compile.js';
import { Page } from './page.js';
import { runProgram } from './program.js';

const GUIDES = readdirSync('docs/guides').filter((name) => name.endsWith('.md'));
const quickStart = new Page('docs/guides/quick-start.md');
const idempotency = new Page('docs/guides/idempotency.md');

let service: TestService;
let partner: TestPartner;

beforeAll(async () => {
  service = await startTestService();
  partner = await service.createPartner();
});
afterAll(() => service.stop());

describe('the retries of the guide to idempotency', () => {
  const source = idempotency.code('## In code', 'typescript');
  const MAIN = `
    import { text } from 'node:stream/consumers';
    import { placeOrder } from './place-order.mts';
    const { baseUrl, key, intent } = JSON.parse(await text(process.stdin));
    console.log(JSON.stringify(await placeOrder(baseUrl, key, intent)));
  `;
  let proxy: Server;
  let calls = 0;

  beforeAll(async () => {
    // The first answer is lost after the order is committed, the second is a 503, the third arrives.
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
      })();
    }).listen(0, '127.0.0.1');
    await once(proxy, 'listening');
  });
  afterAll(() => void proxy.close());

  it('buy once, whatever answer gets lost', async () => {
    const intent = {
      idempotencyKey: 'guide-intent-1',
      body: { package_id: 'pkg_fr_1gb_7d', reference: 'guide-1' },
    };
    const baseUrl = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
    const order = await runProgram(
      {
        files: { 'place-order.mts': source, 'main.mjs': MAIN },
        command: [process.execPath, '--no-warnings', 'main.mjs'],
      },
      { baseUrl, key: partner.sandboxKey, intent },
      60_000,
    );
    expect(calls).toBe(3);
    const { data } = (await partner.sandbox.get('/v1/orders?reference=guide-1')).body;
    expect(data.map(({ id }: { id: string }) => id)).toEqual([(order as { id: string }).id]);
  });

  it('compile under strict settings, as does the server of the quick start', () => {
    const verifier = readFileSync('docs/guides/verifiers/verify-webhook-signature.ts', 'utf8');
    const server = quickStart
      .code('## 5. Receive webhooks', 'typescript')
      .replace(/^import .*verify-webhook-signature.*$/m, () => verifier);
    const sources = new Map([
      ['/docs/place-order.mts', source],
      ['/docs/server.mts', server],
    ]);
    expect(complaintsAbout(sources)).toBe('');
  });
});

describe('what the guides say', () => {
  const document = JSON.parse(readFileSync('docs/openapi/partner.json', 'utf8')) as {
    paths: Record<string, Record<string, unknown>>;
  };
  const text = GUIDES.map((name) => readFileSync(`docs/guides/${name}`, 'utf8')).join('\n');

  it('names calls that are there', () => {
    const calls = [...text.matchAll(/(GET|POST) (\/v1\/[a-z_{}/-]+)/g)];
    expect(calls.length).toBeGreaterThan(15);
    for (const [call, method = '', route = ''] of calls) {
      expect(document.paths[route]?.[method.toLowerCase()], call).toBeDefined();
    }
  });

  it('names error codes with the status that they have', () => {
    const named = [...text.matchAll(/`(4\d\d|5\d\d)`\s+`([a-z_]+)`/g)];
    expect(named.length).toBeGreaterThan(8);
    for (const [, status, code] of named) {
      expect(ERROR_CODES).toContain(code);
      expect(ERROR_CATALOGUE[code as keyof typeof ERROR_CATALOGUE].status).toBe(Number(status));
    }
  });
});

describe('what a partner pastes', () => {
  const pages = [
    ...GUIDES.map((name) => `docs/guides/${name}`),
    'README.md',
    'docs/webhooks.md',
    'docs/reference/index.html',
    'examples/README.md',
  ];

  it.each(pages)('takes the variables that the SDK and the command line read: %s', (page) => {
    const text = readFileSync(page, 'utf8');
    expect(text.match(/\$\{?(KEY|API_KEY|BASE_URL|HEADER)\b|(?<!ESIM_)WEBHOOK_SECRET/g) ?? []).toEqual([]);
  });

  it.each(pages)('has the version in the path, not in the base URL: %s', (page) => {
    const text = readFileSync(page, 'utf8');
    const paths = [...text.matchAll(/(?:\$ESIM_BASE_URL|\{base_?url\})\/(\w+)/gi)].map(([, path]) => path);
    expect(paths.filter((path) => path !== 'v1')).toEqual([]);
  });

  it('calls the service', () => {
    const texts = pages.map((page) => readFileSync(page, 'utf8')).join('\n');
    expect(texts.match(/\$ESIM_BASE_URL\/v1\/|\{base_?url\}\/v1\//gi)?.length).toBeGreaterThan(30);
  });
});
