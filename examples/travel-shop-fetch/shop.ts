// A travel shop on plain Node. POST /buy places an order, POST /webhooks receives events, and each mail is a file.
// node shop.ts    (ESIM_BASE_URL, ESIM_API_KEY, ESIM_WEBHOOK_SECRET; PORT 4000, DATA_DIR ./data)
import { randomUUID } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import { DatabaseSync } from 'node:sqlite';
import { buffer } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { verifyWebhookSignature } from '../../docs/guides/verifiers/verify-webhook-signature.ts';

const {
  ESIM_BASE_URL,
  ESIM_API_KEY,
  ESIM_WEBHOOK_SECRET = '',
  PORT = '4000',
  DATA_DIR = './data',
} = process.env;

type Booking = { id: string; email: string; package_id: string };
type EventData = { reference: string | null; code?: string; esims?: { esim_id: string }[] };
type ServiceEvent = { id: string; type: string; data: EventData };
type Refusal = Error & { final?: boolean };

mkdirSync(`${DATA_DIR}/mails`, { recursive: true });
const database = new DatabaseSync(`${DATA_DIR}/bookings.db`);
database.exec(`CREATE TABLE IF NOT EXISTS bookings
    (id TEXT PRIMARY KEY, email TEXT NOT NULL, package_id TEXT NOT NULL, ended INTEGER NOT NULL DEFAULT 0);
  CREATE TABLE IF NOT EXISTS events (id TEXT PRIMARY KEY, body TEXT NOT NULL, handled INTEGER NOT NULL DEFAULT 0)`);
const run = (sql: string, ...values: string[]): unknown => database.prepare(sql).run(...values);

/** Makes one call. A refusal is final if the body says so, except for 401 and 403. Retry everything else. */
async function call<Data>(path: string, body?: object, key = ''): Promise<Data> {
  const answer = await fetch(`${ESIM_BASE_URL}/v1${path}`, {
    headers: {
      Authorization: `Bearer ${ESIM_API_KEY}`,
      ...(body && { 'Content-Type': 'application/json', 'Idempotency-Key': key }),
    },
    ...(body && { method: 'POST', body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(30_000),
  });
  const { data, retryable, code } = (await answer.json()) as {
    data: Data;
    retryable?: boolean;
    code?: string;
  };
  if (answer.ok && data !== undefined) return data;
  const final = retryable === false && answer.status !== 401 && answer.status !== 403;
  throw Object.assign(new Error(code), { final });
}

/**
 * Buys once, however often it runs: the booking's id is both reference and idempotency key. After 24 hours the key
 * expires, and the service may refuse a second call. So look the first order up by its reference.
 */
async function order({ id, package_id }: Booking): Promise<void> {
  try {
    await call('/orders', { package_id, reference: id }, id);
  } catch (error) {
    const { final, message } = error as Refusal;
    if (!final) throw error;
    const placed = await call<object[]>(`/orders?reference=${id}`);
    if (placed.length === 0)
      mail(id, `We are sorry: your eSIM could not be ordered (${message}). You were not charged.`);
  }
  run('UPDATE bookings SET ended = 1 WHERE id = ?', id);
}

/** Undefined if the order does not belong to this shop. */
const emailOf = (bookingId: string | null) =>
  database.prepare('SELECT email FROM bookings WHERE id = ?').get(bookingId)?.['email'] as string | undefined;

function mail(bookingId: string | null, text: string): void {
  const email = emailOf(bookingId);
  if (!email) return;
  writeFileSync(`${DATA_DIR}/mails/${bookingId}.txt`, `To: ${email}\n\n${text}\n`);
  console.log(`mail for ${bookingId}`);
}

/** Safe to repeat after a crash: each booking has one mail file. */
async function handle({ id, type, data: { reference, code, esims = [] } }: ServiceEvent): Promise<void> {
  if (type === 'order.failed')
    mail(reference, `We are sorry: there is no eSIM (${code}). You were not charged.`);
  if (type === 'order.issued' && emailOf(reference)) {
    const issued = await Promise.all(
      esims.map(({ esim_id }) => call<{ install: Record<string, string> }>(`/esims/${esim_id}`)),
    );
    const links = issued.map(
      ({ install }) => `iPhone:  ${install['ios_url']}\nAndroid: ${install['android_url']}`,
    );
    mail(reference, `Your eSIM is ready. Open on the phone:\n\n${links.join('\n\n')}`);
  }
  run('UPDATE events SET handled = 1 WHERE id = ?', id);
}

/** Processes unfinished bookings and events forever. A crash or an outage only delays them. */
async function work(): Promise<never> {
  for (;;) {
    let pauseMs = 100;
    const tryLater = ({ message }: Error): void => {
      console.error(message);
      pauseMs = 1_000 + Math.random() * 4_000;
    };
    for (const booking of database.prepare('SELECT * FROM bookings WHERE ended = 0').all())
      await order(booking as Booking).catch(tryLater);
    for (const { body } of database.prepare('SELECT body FROM events WHERE handled = 0').all())
      await handle(JSON.parse(String(body)) as ServiceEvent).catch(tryLater);
    await sleep(pauseMs);
  }
}

async function receive(request: IncomingMessage): Promise<[number, object]> {
  const body = await buffer(request);
  if (request.url === '/buy') {
    const { email, package_id } = JSON.parse(body.toString()) as Booking;
    const booking = randomUUID();
    run('INSERT INTO bookings (id, email, package_id) VALUES (?, ?, ?)', booking, email, package_id);
    return [202, { booking }];
  }
  if (request.url !== '/webhooks') return [404, {}];
  if (!verifyWebhookSignature(String(request.headers['x-service-signature']), body, ESIM_WEBHOOK_SECRET))
    return [401, {}];
  const { id } = JSON.parse(body.toString()) as ServiceEvent;
  run('INSERT OR IGNORE INTO events (id, body) VALUES (?, ?)', id, body.toString());
  return [200, {}];
}

createServer((request, response) => {
  void receive(request)
    .catch((): [number, object] => [500, {}])
    .then(([status, body]) => response.writeHead(status).end(JSON.stringify(body)));
}).listen(Number(PORT), '127.0.0.1', () => console.log('ready'));
void work();
