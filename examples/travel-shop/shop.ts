// A travel shop on the SDK. POST /buy places an order, POST /webhooks receives events, and each mail is a file.
// node shop.ts    (ESIM_BASE_URL, ESIM_API_KEY, ESIM_WEBHOOK_SECRET; PORT 4000, DATA_DIR ./data)
import { randomUUID } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import { DatabaseSync } from 'node:sqlite';
import { buffer } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { EsimClient, type EsimEvent, Purchases, SQL_STORE_TABLES, SqlIntentStore } from '@partner-esim/sdk';
import { endsPurchase, unwrapWebhook, WebhookVerificationError } from '@partner-esim/sdk';

const { ESIM_BASE_URL, ESIM_API_KEY, ESIM_WEBHOOK_SECRET, PORT = '4000', DATA_DIR = './data' } = process.env;
if (!ESIM_BASE_URL || !ESIM_API_KEY || !ESIM_WEBHOOK_SECRET)
  throw new Error('Set ESIM_BASE_URL, ESIM_API_KEY and ESIM_WEBHOOK_SECRET.');
const secret = ESIM_WEBHOOK_SECRET;

type Booking = { id: string; email: string; package_id: string };

mkdirSync(`${DATA_DIR}/mails`, { recursive: true });
const database = new DatabaseSync(`${DATA_DIR}/bookings.db`);
database.exec(`${SQL_STORE_TABLES}
  CREATE TABLE IF NOT EXISTS bookings
    (id TEXT PRIMARY KEY, email TEXT NOT NULL, package_id TEXT NOT NULL, ended INTEGER NOT NULL DEFAULT 0);
  CREATE TABLE IF NOT EXISTS events (id TEXT PRIMARY KEY, body TEXT NOT NULL, handled INTEGER NOT NULL DEFAULT 0)`);
const run = (sql: string, ...values: string[]): unknown => database.prepare(sql).run(...values);

const esim = new EsimClient({ apiKey: ESIM_API_KEY, baseUrl: ESIM_BASE_URL });
const intents = new SqlIntentStore((text, parameters) =>
  Promise.resolve(database.prepare(text.replaceAll('$', '?')).all(...(parameters as string[]))),
);
const purchases = new Purchases(esim, intents);

/** Buys once, however often it runs: the booking's id is the intent. */
async function order({ id, package_id }: Booking): Promise<void> {
  try {
    await purchases.placeOrder(id, { package_id });
  } catch (error) {
    // The purchase is still open: the next round retries it.
    if (!endsPurchase(error)) throw error;
    mail(id, `We are sorry: your eSIM could not be ordered (${error.code}). You were not charged.`);
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
async function handle(event: EsimEvent): Promise<void> {
  if (event.type === 'order.failed')
    mail(event.data.reference, `We are sorry: there is no eSIM (${event.data.code}). You were not charged.`);
  if (event.type === 'order.issued' && emailOf(event.data.reference)) {
    const issued = await Promise.all(event.data.esims.map(({ esim_id }) => esim.esims.get(esim_id)));
    const links = issued.map(({ install: of }) => `iPhone:  ${of.ios_url}\nAndroid: ${of.android_url}`);
    mail(event.data.reference, `Your eSIM is ready. Open on the phone:\n\n${links.join('\n\n')}`);
  }
  run('UPDATE events SET handled = 1 WHERE id = ?', event.id);
}

/** Processes unfinished bookings and events forever. A crash or an outage only delays them. */
async function work(): Promise<never> {
  for (;;) {
    let pauseMs = 100;
    const tryLater = ({ message }: Error): void => {
      console.error(message);
      pauseMs = 5_000;
    };
    for (const booking of database.prepare('SELECT * FROM bookings WHERE ended = 0').all())
      await order(booking as Booking).catch(tryLater);
    for (const { body } of database.prepare('SELECT body FROM events WHERE handled = 0').all())
      await handle(JSON.parse(String(body)) as EsimEvent).catch(tryLater);
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
  const event = await unwrapWebhook(body, request.headers, secret);
  run('INSERT OR IGNORE INTO events (id, body) VALUES (?, ?)', event.id, body.toString());
  return [200, {}];
}

createServer((request, response) => {
  void receive(request)
    .catch((error): [number, object] => [error instanceof WebhookVerificationError ? 401 : 500, {}])
    .then(([status, body]) => response.writeHead(status).end(JSON.stringify(body)));
}).listen(Number(PORT), '127.0.0.1', () => console.log('ready'));
void work();
