import {
  chmodSync,
  copyFileSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type Server } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ERROR_CATALOGUE, ERROR_CODES } from '../../src/common/errors/index.js';
import { NodeChild, PROJECT_ROOT } from '../harness/child-process.js';
import { freePort } from '../harness/free-port.js';
import { eventually, startTestService, type TestPartner, type TestService } from '../harness/index.js';
import { runProgram as runDocumented } from './program.js';
import { CliUser, PROGRAM, runProgram } from '../cli/cli-process.js';
import { complaintsAbout } from './compile.js';
import { Page } from './page.js';

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

describe('the quick start, followed from an empty folder', () => {
  let folder: string;
  let user: CliUser;
  const started: NodeChild[] = [];
  let port: number;

  beforeAll(async () => {
    folder = mkdtempSync(path.join(tmpdir(), 'esim-quick-start-'));
    user = new CliUser();
    port = await freePort();
    // What `npm install --global` puts on the PATH.
    writeFileSync(path.join(folder, 'esim'), `#!/bin/sh\nexec '${process.execPath}' '${PROGRAM}' "$@"\n`);
    chmodSync(path.join(folder, 'esim'), 0o755);
  });
  afterAll(async () => {
    await Promise.all(started.map((child) => child.kill()));
    user.remove();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Pastes a block of the page into a shell. */
  async function paste(heading: string): Promise<string> {
    const { stdout, stderr, code } = await runProgram(
      'bash',
      ['-ec', quickStart.code(heading, 'bash').replaceAll(/^export (BASE_URL|KEY)=.*$/gm, '')],
      {
        env: environment(),
        cwd: folder,
      },
    );
    expect(code, stderr).toBe(0);
    return stdout;
  }

  function environment(): Record<string, string> {
    return {
      ...user.env,
      PATH: `${folder}:${path.dirname(process.execPath)}:${process.env['PATH']}`,
      BASE_URL: service.process.api?.url ?? '',
      KEY: partner.sandboxKey,
    };
  }

  it('says who the key is, shows packages, and orders one, once', async () => {
    expect(JSON.parse(await paste('## 1. Ask who you are'))).toMatchObject({ data: { mode: 'sandbox' } });
    const { data } = JSON.parse(await paste('## 2. Choose a package')) as { data: { coverage: string[] }[] };
    expect(data).toHaveLength(3);
    const orders = [JSON.parse(await paste('## 3. Order')), JSON.parse(await paste('## 3. Order'))] as {
      data: { id: string; status: string };
    }[];
    expect(orders[0]).toMatchObject({ data: { status: 'pending', reference: 'booking-4711' } });
    expect(orders[1]).toEqual(orders[0]);
    await eventually('the order is issued', async () => {
      const answer = JSON.parse(await paste('## 4. Read the eSIM')) as {
        data: { id: string; status: string }[];
      };
      expect(answer.data.map(({ id }) => id)).toEqual([orders[0]!.data.id]);
      return answer.data[0]!.status === 'issued';
    });
  });

  it('ends with a verified webhook at a server of its own', async () => {
    const heading = '## 5. Be told instead of asking';
    copyFileSync(
      path.join(PROJECT_ROOT, 'docs/guides/verifiers/verify-webhook-signature.ts'),
      path.join(folder, 'verify-webhook-signature.ts'),
    );
    const program = path.join(folder, 'server.ts');
    writeFileSync(program, quickStart.code(heading, 'typescript').replaceAll('4000', String(port)));
    // Every line of the page but two: the package is not published, and the server runs until it is stopped.
    const [install, login, secret, run] = quickStart.code(heading, 'bash').trim().split('\n');
    expect([install, run]).toEqual(['npm install --global @partner-esim/cli', 'node server.ts']);
    const prepared = await runProgram('bash', ['-ec', `${login}\n${secret}\nprintf '%s' "$WEBHOOK_SECRET"`], {
      env: environment(),
      cwd: folder,
    });
    expect(prepared).toMatchObject({ code: 0, stderr: '' });
    const WEBHOOK_SECRET = /whsec_\w+/.exec(prepared.stdout)![0];
    const server = NodeChild.launch({ args: ['--no-warnings', program], env: { WEBHOOK_SECRET } });
    started.push(server);
    await eventually('the server waits', () => server.stdout.includes('waiting'));
    const listener = user.launch(['listen', '--forward-to', `http://localhost:${port}/webhooks`]);
    started.push(listener);
    await eventually('listen is ready', () => listener.stdout.includes('ready'));
    expect(await user.run(['trigger', 'order.issued'])).toMatchObject({ code: 0 });
    await eventually('the server verified it', () => server.stdout.includes('verified order.issued {'));
    const unsigned = await fetch(`http://localhost:${port}/webhooks`, { method: 'POST', body: '{}' });
    expect(unsigned.status).toBe(401);
  });
});

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
    const baseUrl = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}/v1`;
    const order = await runDocumented(
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
      .code('## 5. Be told instead of asking', 'typescript')
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
