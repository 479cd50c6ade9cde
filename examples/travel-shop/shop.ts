// A travel shop that sells eSIMs, on the SDK: POST /buy orders, POST /webhooks fulfils, a mail is a file.
// node shop.ts    (BASE_URL, ESIM_API_KEY, WEBHOOK_SECRET; PORT 4000, DATA_DIR ./data)
import { randomUUID } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import { DatabaseSync } from 'node:sqlite';
import { buffer } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  endsPurchase,
  EsimClient,
  type EsimEvent,
  Purchases,
  SQL_STORE_TABLES,
  SqlIntentStore,
  unwrapWebhook,
  WebhookVerificationError,
} from '@partner-esim/sdk';

const {
  BASE_URL = '',
  ESIM_API_KEY = '',
  WEBHOOK_SECRET = '',
  PORT = '4000',
  DATA_DIR = './data',
} = process.env;

type Booking = { id: string; email: string; package_id: string };

mkdirSync(`${DATA_DIR}/mails`, { recursive: true });
const database = new DatabaseSync(`${DATA_DIR}/shop.db`);
database.exec(`${SQL_STORE_TABLES}
  CREATE TABLE IF NOT EXISTS bookings
    (id TEXT PRIMARY KEY, email TEXT NOT NULL, package_id TEXT NOT NULL, ended INTEGER NOT NULL DEFAULT 0);
  CREATE TABLE IF NOT EXISTS events (id TEXT PRIMARY KEY, body TEXT NOT NULL, handled INTEGER NOT NULL DEFAULT 0)`);

const esim = new EsimClient({ apiKey: ESIM_API_KEY, baseUrl: BASE_URL });
const intents = new SqlIntentStore((text, parameters) =>
  Promise.resolve(database.prepare(text.replaceAll('$', '?')).all(...(parameters as string[]))),
);
const purchases = new Purchases(esim, intents);

/** Bought once, however often this runs: the booking's id is the intent. */
async function order({ id, email, package_id }: Booking): Promise<void> {
  try {
    await purchases.placeOrder(id, { package_id });
  } catch (error) {
    // Open still: the next round takes it up.
    if (!endsPurchase(error)) throw error;
    mail(id, email, `We are sorry: your eSIM could not be ordered (${error.code}). You were not charged.`);
  }
  database.prepare('UPDATE bookings SET ended = 1 WHERE id = ?').run(id);
}

function mail(bookingId: string, to: string, text: string): void {
  writeFileSync(`${DATA_DIR}/mails/${bookingId}.txt`, `To: ${to}\n\n${text}\n`);
  console.log(`mail for ${bookingId}`);
}

/** May run again after a crash: the mail of a booking is one file. */
async function handle(event: EsimEvent): Promise<void> {
  if (event.type === 'order.issued' || event.type === 'order.failed') {
    const reference = event.data.reference ?? '';
    const booking = database.prepare('SELECT * FROM bookings WHERE id = ?').get(reference) as
      Booking | undefined;
    if (booking && event.type === 'order.failed')
      mail(
        booking.id,
        booking.email,
        `We are sorry: there is no eSIM (${event.data.code}). You were not charged.`,
      );
    if (booking && event.type === 'order.issued') {
      const installs = await Promise.all(
        event.data.esims.map(async ({ esim_id }) => (await esim.esims.get(esim_id)).install),
      );
      const links = installs.map(
        ({ ios_url, android_url }) => `iPhone:  ${ios_url}\nAndroid: ${android_url}`,
      );
      mail(booking.id, booking.email, `Your eSIM is ready. Open on the phone:\n\n${links.join('\n\n')}`);
    }
  }
  database.prepare('UPDATE events SET handled = 1 WHERE id = ?').run(event.id);
}

/** What was stored and not finished, one after the other, for ever: a crash and an outage only make it late. */
async function work(): Promise<never> {
  const complain = (error: Error): void => console.error(error.message);
  for (;;) {
    for (const booking of database.prepare('SELECT * FROM bookings WHERE ended = 0').all())
      await order(booking as Booking).catch(complain);
    for (const { body } of database.prepare('SELECT body FROM events WHERE handled = 0').all())
      await handle(JSON.parse(String(body)) as EsimEvent).catch(complain);
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
  const event = await unwrapWebhook(body, request.headers, WEBHOOK_SECRET);
  database
    .prepare('INSERT INTO events (id, body) VALUES (?, ?) ON CONFLICT DO NOTHING')
    .run(event.id, body.toString());
  return [200, {}];
}

createServer((request, response) => {
  void receive(request)
    .catch((error): [number, object] => [error instanceof WebhookVerificationError ? 401 : 500, {}])
    .then(([status, body]) => response.writeHead(status).end(JSON.stringify(body)));
}).listen(Number(PORT), '127.0.0.1', () => console.log('ready'));
void work();
