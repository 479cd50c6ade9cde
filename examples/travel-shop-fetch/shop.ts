// A travel shop that sells eSIMs, with nothing but Node: POST /buy orders, POST /webhooks fulfils, a mail is a file.
// node shop.ts    (BASE_URL, ESIM_API_KEY, WEBHOOK_SECRET; PORT 4000, DATA_DIR ./data)
import { randomUUID } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import { DatabaseSync } from 'node:sqlite';
import { buffer } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { verifyWebhookSignature } from '../../docs/guides/verifiers/verify-webhook-signature.ts';

const { BASE_URL, ESIM_API_KEY, WEBHOOK_SECRET = '', PORT = '4000', DATA_DIR = './data' } = process.env;

type Booking = { id: string; email: string; package_id: string };
type ServiceEvent = { id: string; type: string; data: Record<string, unknown> };

mkdirSync(`${DATA_DIR}/mails`, { recursive: true });
const database = new DatabaseSync(`${DATA_DIR}/shop.db`);
database.exec(`CREATE TABLE IF NOT EXISTS bookings
    (id TEXT PRIMARY KEY, email TEXT NOT NULL, package_id TEXT NOT NULL, order_id TEXT, refused TEXT);
  CREATE TABLE IF NOT EXISTS events (id TEXT PRIMARY KEY, body TEXT NOT NULL, handled INTEGER NOT NULL DEFAULT 0)`);

/**
 * One call. `retryable` says that the same call may go again; so does an answer that never came. A key that is not
 * accepted (401, 403) says nothing of what was bought with it before.
 */
async function call<Data = Record<string, unknown>>(
  method: string,
  path: string,
  body?: object,
  key?: string,
): Promise<Data> {
  const answer = await fetch(`${BASE_URL}/v1${path}`, {
    method,
    headers: {
      Authorization: `Bearer ${ESIM_API_KEY}`,
      ...(body && { 'Content-Type': 'application/json' }),
      ...(key && { 'Idempotency-Key': key }),
    },
    ...(body && { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(30_000),
  });
  const json = (await answer.json()) as Record<string, unknown>;
  if (answer.ok) return json['data'] as Data;
  const final = json['retryable'] !== true && answer.status !== 401 && answer.status !== 403;
  throw Object.assign(new Error(String(json['code'])), { final });
}

/**
 * Until there is a final answer. The booking's id is reference and idempotency key: it is bought once. After 24 hours the
 * key is forgotten and a refusal may be of a second call, so the first one's order is looked for by its reference.
 */
async function order({ id, email, package_id }: Booking): Promise<void> {
  for (let attempt = 0; ; attempt += 1) {
    try {
      const placed = await call('POST', '/orders', { package_id, reference: id }, id).catch(
        async (error: Error & { final?: boolean }) => {
          if (!error.final) throw error;
          const [bought] = await call<{ id: string }[]>('GET', `/orders?reference=${id}`);
          return bought ?? error;
        },
      );
      if (placed instanceof Error) return refuse(id, email, placed.message);
      database.prepare('UPDATE bookings SET order_id = ? WHERE id = ?').run(String(placed['id']), id);
      return;
    } catch {
      await sleep(Math.random() * 500 * 2 ** Math.min(attempt, 6));
    }
  }
}

function refuse(id: string, email: string, reason: string): void {
  database.prepare('UPDATE bookings SET refused = ? WHERE id = ?').run(reason, id);
  mail(id, email, `We are sorry: your eSIM could not be ordered (${reason}). You were not charged.`);
}

function mail(bookingId: string, to: string, text: string): void {
  writeFileSync(`${DATA_DIR}/mails/${bookingId}.txt`, `To: ${to}\n\n${text}\n`);
  console.log(`mail for ${bookingId}`);
}

/** May run again after a crash: the mail of a booking is one file. */
async function handle(event: ServiceEvent): Promise<void> {
  const { reference, esims } = event.data as { reference: string; esims?: { esim_id: string }[] };
  const booking = database.prepare('SELECT * FROM bookings WHERE id = ?').get(reference ?? '') as
    Booking | undefined;
  if (booking && event.type === 'order.failed') refuse(booking.id, booking.email, String(event.data['code']));
  if (booking && event.type === 'order.issued') {
    const links = await Promise.all(
      (esims ?? []).map(async ({ esim_id }) => {
        const esim = await call('GET', `/esims/${esim_id}`);
        const { ios_url, android_url } = esim['install'] as { ios_url: string; android_url: string };
        return `iPhone:  ${ios_url}\nAndroid: ${android_url}`;
      }),
    );
    mail(booking.id, booking.email, `Your eSIM is ready. Open on the phone:\n\n${links.join('\n\n')}`);
  }
  database.prepare('UPDATE events SET handled = 1 WHERE id = ?').run(event.id);
}

/** What was stored and not finished, one after the other, for ever: a crash and an outage only make it late. */
async function work(): Promise<never> {
  for (;;) {
    const bookings = database
      .prepare('SELECT * FROM bookings WHERE order_id IS NULL AND refused IS NULL')
      .all();
    for (const booking of bookings) await order(booking as Booking);
    for (const { body } of database.prepare('SELECT body FROM events WHERE handled = 0').all())
      await handle(JSON.parse(String(body)) as ServiceEvent).catch((error: Error) =>
        console.error(error.message),
      );
    await sleep(100);
  }
}

async function receive(request: IncomingMessage): Promise<[number, object]> {
  const body = await buffer(request);
  if (request.url === '/buy') {
    const { email, package_id } = JSON.parse(body.toString()) as Booking;
    const id = randomUUID();
    database
      .prepare('INSERT INTO bookings (id, email, package_id) VALUES (?, ?, ?)')
      .run(id, email, package_id);
    return [202, { booking: id }];
  }
  if (request.url !== '/webhooks') return [404, {}];
  if (!verifyWebhookSignature(String(request.headers['x-service-signature']), body, WEBHOOK_SECRET))
    return [401, {}];
  const { id } = JSON.parse(body.toString()) as ServiceEvent;
  database
    .prepare('INSERT INTO events (id, body) VALUES (?, ?) ON CONFLICT DO NOTHING')
    .run(id, body.toString());
  return [200, {}];
}

createServer((request, response) => {
  void receive(request)
    .catch((): [number, object] => [500, {}])
    .then(([status, body]) => response.writeHead(status).end(JSON.stringify(body)));
}).listen(Number(PORT), '127.0.0.1', () => console.log('ready'));
void work();
