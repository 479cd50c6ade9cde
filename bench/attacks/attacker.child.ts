import { execFileSync } from 'node:child_process';
import { getDiffieHellman, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createServer as createTlsServer } from 'node:tls';
import { Agent, request } from 'undici';
import { answerParent } from '../child-link.js';
import {
  type AttackerQuestion,
  type AttackerSettings,
  type AttackName,
  type AttackReport,
  RATES,
} from './attacker.js';

/** One for each call of an attack: a code that was drawn is kept for ten minutes. */
const QR_ESIMS = 700;
const MOST_UNREAD = 60;
const ORDER = JSON.stringify({ package_id: 'pkg_fr_1gb_7d', quantity: 1 });
const NO_KEY = `svc_${'sk'}_test_${'x'.repeat(32)}`;

let settings: AttackerSettings;
let esims: readonly string[] = [];
const agent = new Agent({ connections: 64, headersTimeout: 30_000, bodyTimeout: 30_000 });
const unread = new Set<Socket>();
let running: { stop: AbortController; done: Promise<AttackReport> } | null = null;

answerParent<AttackerQuestion, AttackReport | object>(async (question) => {
  if (question.do === 'open') return open(question);
  if (question.do === 'begin') {
    if (question.attack === 'QR burst') esims = await issueEsims();
    const stop = new AbortController();
    running = { stop, done: attack(question.attack, stop.signal) };
    return {};
  }
  running!.stop.abort();
  return running!.done;
});

async function open(asked: AttackerSettings): Promise<object> {
  settings = asked;
  const hanging = createServer((socket) => void socket.on('error', () => undefined).resume());
  hanging.listen(0, '127.0.0.1');
  await once(hanging, 'listening');
  return {
    hangingUrl: `http://127.0.0.1:${(hanging.address() as AddressInfo).port}/hook`,
    costlyUrl: `https://localhost:${await listenCostly()}/hook`,
  };
}

/** TLS 1.2 with a Diffie-Hellman group that takes the client a good part of a second; answers its port. */
async function listenCostly(): Promise<number> {
  const folder = await mkdtemp(path.join(tmpdir(), 'esim-bench-tls-'));
  const [key, cert] = [path.join(folder, 'key.pem'), path.join(folder, 'cert.pem')];
  const subject = ['-subj', '/CN=localhost', '-days', '1', '-keyout', key, '-out', cert];
  execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', ...subject], { stdio: 'pipe' });
  const server = createTlsServer({
    ...{ key: await readFile(key), cert: await readFile(cert), dhparam: groupOf('modp18') },
    ...{ maxVersion: 'TLSv1.2', ciphers: 'kDHE' },
  });
  await rm(folder, { recursive: true });
  server.on('tlsClientError', () => undefined);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

/** A group of Node's in PEM. */
function groupOf(name: string): string {
  const der = (tag: number, content: Buffer): Buffer =>
    Buffer.concat([Buffer.from([tag, 0x82, content.length >> 8, content.length & 0xff]), content]);
  const integers = [getDiffieHellman(name).getPrime(), Buffer.from([2])].map((bytes) =>
    der(0x02, Buffer.concat([Buffer.from([0]), bytes])),
  );
  const body = der(0x30, Buffer.concat(integers)).toString('base64');
  return `-----BEGIN DH PARAMETERS-----\n${body.replaceAll(/.{64}/g, '$&\n')}\n-----END DH PARAMETERS-----\n`;
}

/** At its rate, whatever became of the calls before; those under way are waited for. */
async function attack(name: AttackName, signal: AbortSignal): Promise<AttackReport> {
  const answers: Record<string, number> = {};
  const underWay = new Set<Promise<void>>();
  const cpuBefore = process.cpuUsage();
  const startedAtMs = performance.now();
  for (let nth = 0; !signal.aborted; nth++) {
    const call = MOVES[name](nth)
      .catch((error: unknown) => (error as NodeJS.ErrnoException).code ?? (error as Error).message)
      .then((answer) => void (answers[answer] = (answers[answer] ?? 0) + 1));
    underWay.add(call);
    void call.finally(() => underWay.delete(call));
    await sleep(Math.max(0, startedAtMs + ((nth + 1) * 1_000) / RATES[name] - performance.now()));
  }
  const { user, system } = process.cpuUsage(cpuBefore);
  const cpu = (user + system) / 1_000 / (performance.now() - startedAtMs);
  await Promise.all(underWay);
  for (const socket of unread) socket.destroy();
  return { answers, cpu };
}

const MOVES: Readonly<Record<AttackName, (nth: number) => Promise<string>>> = {
  'addresses with a zone': (nth) =>
    get('/v1/me', NO_KEY, { 'x-forwarded-for': `fe80::${(nth % 9_999) + 1}%eth0` }),
  'hanging endpoints': (nth) => order(settings.hangingKeys[nth % settings.hangingKeys.length]!),
  'costly TLS': () => order(settings.costlyKey),
  'list flood': (nth) => {
    const filters = [
      'status=failed',
      'status=canceled',
      'created_before=2020-01-01T00:00:00Z',
      'reference=none',
    ];
    return get(`/v1/orders?limit=100&${filters[nth % filters.length]}`, settings.bigKey);
  },
  'callers that never read': neverRead,
  'QR burst': (nth) => get(`/v1/esims/${esims[nth % esims.length]}/qr`, settings.key),
  'catalogue cache': (nth) =>
    get(
      `/v1/catalog?limit=100&min_data_bytes=${nth + 1}&max_price_amount=${1_000_000 + nth}`,
      settings.bigKey,
    ),
  'catalogues of many': (nth) =>
    get('/v1/catalog?limit=25', settings.manyKeys[nth % settings.manyKeys.length]!),
  'sandbox flood': () => order(settings.key),
  'feed by a rare type': () => get('/v1/events?limit=100&type=order.topup.failed', settings.bigKey),
  'metrics scraping': (nth) => send(`${settings.metricsUrls[nth % settings.metricsUrls.length]}/metrics`, {}),
  'refused calls': () => get('/v1/me', settings.refusedKey, { 'x-forwarded-for': '198.51.100.1' }),
};

function get(path: string, key: string, headers: Readonly<Record<string, string>> = {}): Promise<string> {
  return send(settings.apiUrl + path, { authorization: `Bearer ${key}`, ...headers });
}

function order(key: string, body = ORDER): Promise<string> {
  const headers = {
    authorization: `Bearer ${key}`,
    'content-type': 'application/json',
    'idempotency-key': randomUUID(),
  };
  return send(`${settings.apiUrl}/v1/orders`, headers, body);
}

async function send(url: string, headers: Readonly<Record<string, string>>, body?: string): Promise<string> {
  const answer = await request(url, {
    method: body === undefined ? 'GET' : 'POST',
    headers,
    body: body ?? null,
    dispatcher: agent,
  });
  await answer.body.dump();
  return String(answer.statusCode);
}

/** One more connection that asks and does not read, while there are not too many. */
async function neverRead(): Promise<string> {
  if (unread.size >= MOST_UNREAD) return 'all are open';
  const socket = connect(Number(new URL(settings.apiUrl).port), '127.0.0.1');
  unread.add(socket);
  socket.on('error', () => undefined).on('close', () => unread.delete(socket));
  await once(socket, 'connect');
  socket.pause();
  const call = `GET /v1/catalog?limit=100 HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${settings.key}\r\n\r\n`;
  socket.write(call.repeat(200));
  return 'opened';
}

async function issueEsims(): Promise<readonly string[]> {
  const body = JSON.stringify({ package_id: 'pkg_fr_1gb_7d', quantity: 20 });
  for (let count = 0; count < QR_ESIMS; count += 20) await order(settings.key, body);
  for (;;) {
    const ids: string[] = [];
    let cursor = '';
    do {
      const answer = await request(`${settings.apiUrl}/v1/esims?limit=100${cursor}`, {
        headers: { authorization: `Bearer ${settings.key}` },
        dispatcher: agent,
      });
      const page = (await answer.body.json()) as { data: { id: string }[]; next_cursor: string | null };
      ids.push(...page.data.map(({ id }) => id));
      cursor = page.next_cursor ? `&cursor=${page.next_cursor}` : '';
    } while (cursor !== '');
    if (ids.length >= QR_ESIMS) return ids;
    await sleep(200);
  }
}
