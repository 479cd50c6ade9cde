import { execFileSync } from 'node:child_process';
import { getDiffieHellman } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createServer as createTlsServer } from 'node:tls';
import type { AttackName } from './attacks.js';
import { serveParent } from './shared/child.js';
import { kindOf, ORDER, ORDERS_PATH, send, sendOk } from './shared/http.js';
import { openLoop } from './shared/load.js';

/** One eSIM per call of the attack, because the service caches a rendered QR code for ten minutes. */
const QR_ESIMS = 700;
const MAX_UNREAD = 60;
const NO_KEY = `svc_${'sk'}_test_${'x'.repeat(32)}`;
const RARE_FILTERS = [
  'status=failed',
  'status=canceled',
  'created_before=2020-01-01T00:00:00Z',
  'reference=none',
];

export interface AttackerSettings {
  readonly apiUrl: string;
  readonly metricsUrls: readonly string[];
  /** A Sandbox key of the attacking partner. */
  readonly key: string;
  /** A Live key of the partner that owns a third of the filled rows. */
  readonly bigKey: string;
  /** Live keys of the partners that read the catalog in turn. */
  readonly manyKeys: readonly string[];
  /** Keys of the partners whose endpoints hang. */
  readonly hangingKeys: readonly string[];
  /** Key of the partner whose endpoints are expensive to connect to. */
  readonly costlyKey: string;
  /** A key that does not allow the attacker's address. */
  readonly refusedKey: string;
}

export interface AttackReport {
  /** Number of calls by HTTP status or kind of failure. */
  readonly answers: Readonly<Record<string, number>>;
  /** CPU cores used by the attacker process. */
  readonly cpu: number;
}

const api = { listen, begin, end };
export type AttackerApi = typeof api;
serveParent(api);

let settings: AttackerSettings;
let esims: readonly string[] = [];
const unread = new Set<Socket>();
let running: { isOver: boolean; done: Promise<AttackReport> } | null = null;

/** @returns the URLs of an endpoint that never responds and of one with an expensive TLS handshake */
async function listen(): Promise<{ hangingUrl: string; costlyUrl: string }> {
  const hanging = createServer((socket) => void socket.on('error', () => undefined).resume());
  const hangingUrl = `http://127.0.0.1:${await portOf(hanging)}/hook`;
  return { hangingUrl, costlyUrl: `https://localhost:${await portOf(await createCostlyServer())}/hook` };
}

async function portOf(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

/** A TLS 1.2 server whose Diffie-Hellman group costs each client a large part of a second. */
async function createCostlyServer(): Promise<Server> {
  const folder = await mkdtemp(path.join(tmpdir(), 'esim-bench-tls-'));
  const [key, cert] = [path.join(folder, 'key.pem'), path.join(folder, 'cert.pem')];
  const subject = ['-subj', '/CN=localhost', '-days', '1', '-keyout', key, '-out', cert];
  execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', ...subject], { stdio: 'pipe' });
  const server = createTlsServer({
    ...{ key: await readFile(key), cert: await readFile(cert), dhparam: pemOfGroup('modp18') },
    ...{ maxVersion: 'TLSv1.2', ciphers: 'kDHE' },
  });
  await rm(folder, { recursive: true });
  return server.on('tlsClientError', () => undefined);
}

function pemOfGroup(name: string): string {
  const der = (tag: number, content: Buffer): Buffer =>
    Buffer.concat([Buffer.from([tag, 0x82, content.length >> 8, content.length & 0xff]), content]);
  const integers = [getDiffieHellman(name).getPrime(), Buffer.from([2])].map((bytes) =>
    der(0x02, Buffer.concat([Buffer.from([0]), bytes])),
  );
  const body = der(0x30, Buffer.concat(integers)).toString('base64');
  return `-----BEGIN DH PARAMETERS-----\n${body.replaceAll(/.{64}/g, '$&\n')}\n-----END DH PARAMETERS-----\n`;
}

/** Starts the attack without waiting for it. */
async function begin(name: AttackName, perSecond: number, wanted: AttackerSettings): Promise<void> {
  settings = wanted;
  if (name === 'QR burst') esims = await issueEsims();
  const state = { isOver: false };
  running = Object.assign(state, { done: attack(name, perSecond, () => state.isOver) });
}

/** Stops the attack and waits for in-flight calls. */
function end(): Promise<AttackReport> {
  running!.isOver = true;
  return running!.done;
}

async function attack(name: AttackName, perSecond: number, isOver: () => boolean): Promise<AttackReport> {
  const answers: Record<string, number> = {};
  const cpuBefore = process.cpuUsage();
  const startedAtMs = performance.now();
  await openLoop(perSecond, isOver, async (nth) => {
    const answer = await MOVES[name](nth).catch(kindOf);
    answers[answer] = (answers[answer] ?? 0) + 1;
  });
  const { user, system } = process.cpuUsage(cpuBefore);
  for (const socket of unread) socket.destroy();
  return { answers, cpu: (user + system) / 1_000 / (performance.now() - startedAtMs) };
}

const MOVES: Readonly<Record<AttackName, (nth: number) => Promise<string>>> = {
  'addresses with a zone': (nth) =>
    get('/v1/me', NO_KEY, { 'x-forwarded-for': `fe80::${(nth % 9_999) + 1}%eth0` }),
  'hanging endpoints': (nth) => order(settings.hangingKeys[nth % settings.hangingKeys.length]!),
  'costly TLS': () => order(settings.costlyKey),
  'list flood': (nth) => get(`/v1/orders?limit=100&${RARE_FILTERS[nth % 4]}`, settings.bigKey),
  'callers that never read': neverRead,
  'QR burst': (nth) => get(`/v1/esims/${esims[nth % esims.length]}/qr`, settings.key),
  'catalog cache': (nth) =>
    get(`/v1/catalog?limit=100&min_data_bytes=${nth + 1}&max_price_amount=${1e6 + nth}`, settings.bigKey),
  'catalogs of many': (nth) =>
    get('/v1/catalog?limit=25', settings.manyKeys[nth % settings.manyKeys.length]!),
  'sandbox flood': () => order(settings.key),
  'feed by a rare type': () => get('/v1/events?limit=100&type=order.topup.failed', settings.bigKey),
  'metrics scraping': (nth) =>
    statusOf(send(`${settings.metricsUrls[nth % settings.metricsUrls.length]}/metrics`, null)),
  'refused calls': () => get('/v1/me', settings.refusedKey, { 'x-forwarded-for': '198.51.100.1' }),
};

function get(url: string, key: string, headers: Readonly<Record<string, string>> = {}): Promise<string> {
  return statusOf(send(settings.apiUrl + url, key, undefined, headers));
}

function order(key: string, body: object = ORDER): Promise<string> {
  return statusOf(send(settings.apiUrl + ORDERS_PATH, key, body));
}

async function statusOf(answer: ReturnType<typeof send>): Promise<string> {
  return String((await answer).status);
}

/** Opens another connection that sends requests and never reads the responses, up to the maximum. */
async function neverRead(): Promise<string> {
  if (unread.size >= MAX_UNREAD) return 'connection limit reached';
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
  for (let count = 0; count < QR_ESIMS; count += 20) await order(settings.key, { ...ORDER, quantity: 20 });
  for (;;) {
    const ids: string[] = [];
    let cursor: string | null = '';
    while (cursor !== null) {
      const url: string = `${settings.apiUrl}/v1/esims?limit=100${cursor && `&cursor=${cursor}`}`;
      const page: { data: { id: string }[]; next_cursor: string | null } = await sendOk(url, settings.key);
      ids.push(...page.data.map(({ id }) => id));
      cursor = page.next_cursor;
    }
    if (ids.length >= QR_ESIMS) return ids;
    await sleep(200);
  }
}
