import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { overTcp } from '../harness/database.js';
import { startTestService, type TestService } from '../harness/index.js';
import { issueEsim } from '../harness/order-steps.js';
import { size } from '../harness/size.js';
import { startTraceCollector, type TraceCollector } from '../harness/trace-collector.js';
import { codesOf, createLink, type TestLink, Visitor } from './install-steps.js';

const OPENINGS = size('INSTALL_OPENINGS', 300, 10_000);
const AT_ONCE = 20;

let all: TestService;
let install: TestService;
let proxy: DatabaseProxy;
let collector: TraceCollector;
let visitor: Visitor;
let link: TestLink;
let guarded: TestLink;
let secrets: string[];
const logLines: string[] = [];

beforeAll(async () => {
  all = await startTestService();
  const { sandbox } = await all.createPartner('Kestrel Travel');
  const esimId = await issueEsim(sandbox, 'pkg_fr_1gb_7d');
  link = await createLink(sandbox, esimId);
  guarded = await createLink(sandbox, esimId, { access_code: true });
  const { smdp, matching } = await codesOf(sandbox, esimId);
  secrets = [link.token, guarded.token, guarded.accessCode!, matching, smdp];
  collector = await startTraceCollector();
  proxy = await DatabaseProxy.before(all.database.url);
  install = await startTestService({
    role: 'install',
    database: { ...all.database, url: proxy.url },
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url },
    logLines,
  });
  visitor = Visitor.of(install);
  // From here on, API and worker are down.
  await all.process.stop();
});
afterAll(async () => {
  await install.stop();
  await collector.close();
  await proxy.cut();
  await all.database.drop();
});

/** A way to the database that can be cut. */
class DatabaseProxy {
  private readonly sockets = new Set<Socket>();
  private readonly server: Server;

  private constructor(private readonly target: URL) {
    this.server = createServer((socket) => {
      const upstream = connect({ host: target.hostname, port: Number(target.port) });
      this.sockets.add(socket);
      socket.on('error', () => undefined).on('close', () => upstream.destroy());
      upstream.on('error', () => undefined).on('close', () => socket.destroy());
      socket.pipe(upstream).pipe(socket);
    });
  }

  static async before(databaseUrl: string): Promise<DatabaseProxy> {
    const proxy = new DatabaseProxy(overTcp(databaseUrl));
    await once(proxy.server.listen(0, '127.0.0.1'), 'listening');
    return proxy;
  }

  get url(): string {
    const url = new URL(this.target);
    url.host = `127.0.0.1:${(this.server.address() as AddressInfo).port}`;
    return url.href;
  }

  async cut(): Promise<void> {
    if (!this.server.listening) return;
    const closed = once(this.server.close(), 'close');
    for (const socket of this.sockets) socket.destroy();
    await closed;
  }
}

async function openings(): Promise<void> {
  const share = Array.from({ length: OPENINGS / AT_ONCE });
  const statuses = await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      const seen: number[] = [];
      for (const _ of share) seen.push((await visitor.open(link.path)).status);
      return seen;
    }),
  );
  expect(new Set(statuses.flat())).toEqual(new Set([200]));
}

describe('the install role alone', () => {
  it('shows pages while API and worker are down, and tells no log, metric, trace or row their secrets', async () => {
    await openings();
    expect((await visitor.open(link.path)).text).toContain(secrets[3]);
    await visitor.open(`${link.path}/${guarded.token}`);
    await visitor.open(`/${link.token}`);
    await visitor.open(link.path, {}, 'PUT');
    await visitor.enter(guarded.path, 'wrong');
    expect((await visitor.enter(guarded.path, guarded.accessCode!)).status).toBe(303);
    const metrics = await install.process.resources.metrics.metrics();
    expect(metrics).toMatch(
      new RegExp(`http_requests_total\\{[^}]*route="/i/:token",status="200"[^}]*\\} \\d{3,}`),
    );
    await collector.spanThat('a page', (span) => span.name === 'GET /i/:token');
    const calls = logLines.filter((line) => line.includes('"http.call"'));
    expect(calls.length).toBeGreaterThan(OPENINGS);
    const { rows } = await all.database.pool.query<{ row: string }>(
      'SELECT to_jsonb(c)::text AS row FROM api_calls c',
    );
    const told = {
      log: logLines.join('\n'),
      metrics,
      traces: collector.bodies.join('\n'),
      rows: JSON.stringify(rows),
    };
    for (const [place, text] of Object.entries(told))
      for (const secret of secrets) expect([place, text.includes(secret)]).toEqual([place, false]);
  });

  it('says so when PostgreSQL is down, and shows nothing that it has read before', async () => {
    await proxy.cut();
    const page = await visitor.open(`${link.path}?lang=de`);
    expect(page.status).toBe(503);
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(page.text).toContain('Wir können Ihre eSIM gerade nicht anzeigen');
    for (const text of ['Kestrel', ...secrets]) expect(page.text).not.toContain(text);
  });
});
