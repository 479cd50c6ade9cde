import { request } from 'node:http';
import { Gauge, Registry } from 'prom-client';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { OpsProbe } from '../../src/apps/ops.js';
import type { ProcessResources } from '../../src/apps/process-resources.js';
import { freePort } from '../../chaos/free-port.js';
import { ADMIN_TOKEN } from '../harness/settings.js';
import { startTestService, type TestService } from '../harness/index.js';

const ANONYMOUS = ['/livez', '/readyz', '/metrics', '/openapi/partner.json', '/openapi/admin.json'];
const LOCAL = [
  ...['localhost', 'localhost:3001', 'LOCALHOST.', 'esim.localhost:1', '127.0.0.1', '127.0.0.1:3001'],
  ...['127.9.9.9:80', '[::1]', '[::1]:3001', '[::ffff:127.0.0.1]:3001'],
];
const FOREIGN = [
  ...[
    'evil.example',
    'evil.example:3001',
    'localhost.evil.example',
    'notlocalhost',
    '127.0.0.1.evil.example',
  ],
  ...[
    'evil.example#localhost',
    'localhost@evil.example',
    'evil@localhost',
    '127.0.0.1:x',
    '[::1',
    '10.0.0.1',
  ],
  ...['0.0.0.0:3001', '[::]:3001', '[2001:db8::1]', '.', ':3001', 'localhost:3001:1'],
];

let service: TestService;
let apart: TestService;
let opsUrl: string;
beforeAll(async () => {
  service = await startTestService();
  const port = await freePort();
  apart = await startTestService({
    role: 'api',
    database: service.database,
    env: { OPS_PORT: String(port) },
  });
  opsUrl = `http://127.0.0.1:${port}`;
});
afterAll(async () => {
  await apart.stop();
  await service.stop();
});

function get(
  url: string,
  host: string,
  headers: Record<string, string> = {},
): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    request(url, { headers: { host, ...headers }, agent: false }, (answer) => {
      let text = '';
      answer.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
      answer.once('end', () => resolve({ status: answer.statusCode!, text }));
    })
      .once('error', reject)
      .end();
  });
}

describe('a listener at a loopback address', () => {
  it.each(LOCAL)('serves its anonymous paths to Host %s', async (host) => {
    for (const path of ANONYMOUS)
      expect([path, (await get(service.admin.baseUrl + path, host)).status]).toEqual([path, 200]);
    for (const path of ['/livez', '/readyz', '/metrics'])
      expect([path, (await get(opsUrl + path, host)).status]).toEqual([path, 200]);
  });

  it.each(FOREIGN)(
    'serves no anonymous path for Host %s, because a page may have rebound its name',
    async (host) => {
      for (const path of ANONYMOUS) {
        const { status, text } = await get(service.admin.baseUrl + path, host);
        expect([path, status, (JSON.parse(text) as { code: string }).code]).toEqual([path, 403, 'forbidden']);
      }
      for (const path of ['/livez', '/readyz', '/metrics'])
        expect([path, (await get(opsUrl + path, host)).status]).toEqual([path, 403]);
    },
  );

  it('serves a caller with a token under any Host, because an ingress may send its own', async () => {
    const url = `${service.admin.baseUrl}/internal/v1/partners`;
    const authorization = `Bearer ${ADMIN_TOKEN}`;
    expect((await get(url, 'admin.partner.example', { authorization })).status).toBe(200);
    expect((await get(url, 'evil.example')).status).toBe(401);
  });
});

it('serves its anonymous paths under any Host when it listens on a network address', async () => {
  const env = { ADMIN_HOST: '0.0.0.0' };
  const open = await startTestService({ env, database: service.database });
  try {
    for (const path of ANONYMOUS)
      expect((await get(open.admin.baseUrl + path, 'admin.partner.example')).status).toBe(200);
  } finally {
    await open.stop();
  }
});

it('responds to HEAD probes', async () => {
  for (const path of ['/livez', '/readyz', '/metrics'])
    for (const url of [opsUrl, service.admin.baseUrl])
      expect([url, path, (await fetch(url + path, { method: 'HEAD' })).status]).toEqual([url, path, 200]);
});

describe('metrics scrapes', () => {
  function probeWith(collect: () => Promise<void>, limitMs?: number): OpsProbe {
    const metrics = new Registry();
    new Gauge({ name: 'counted', help: 'By a statement.', registers: [metrics], collect });
    const resources = { role: 'worker', metrics, pools: [] } as unknown as ProcessResources;
    return new OpsProbe(resources, limitMs);
  }

  it('collects once for concurrent scrapes, and again for later ones', async () => {
    let collections = 0;
    let finish = (): void => undefined;
    const probe = probeWith(() => {
      collections++;
      return new Promise((resolve) => (finish = resolve));
    });
    const scrapes = Array.from({ length: 10 }, () => probe.answer('/metrics'));
    finish();
    for (const { status, body } of await Promise.all(scrapes)) {
      expect(status).toBe(200);
      expect(body).toContain('counted{role="worker"} 0');
    }
    expect(collections).toBe(1);
    const later = probe.answer('/metrics');
    finish();
    expect([(await later).status, collections]).toEqual([200, 2]);
  });

  it('times out a hanging scrape and starts the next one afresh', async () => {
    let collections = 0;
    const probe = probeWith(
      () => (++collections === 1 ? new Promise(() => undefined) : Promise.resolve()),
      100,
    );
    const first = await Promise.all([probe.answer('/metrics'), probe.answer('/metrics')]);
    expect(first.map(({ status }) => status)).toEqual([503, 503]);
    expect([(await probe.answer('/metrics')).status, collections]).toEqual([200, 2]);
  });
});
