import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Cleanups } from './cleanups.js';
import type { BenchOptions } from './options.js';
import { row, type Row, type Section } from './report/report.js';
import { quantile } from './report/statistics.js';
import type { DatabaseServer } from './service/database-server.js';
import { OrderReceiver } from './service/order-receiver.js';
import { createPartners } from './service/partners.js';
import { ServiceProcess } from './service/service-process.js';

const DATABASE = 'bench_delivery';
/** A partner that sells an eSIM every tenth of a second is a large one. */
const PACED_EVERY_MS = 100;
const BURST = 100;
const PATIENCE_MS = 60_000;
const MOST_P95_MS = 1_000;

interface Bed {
  readonly service: ServiceProcess;
  readonly key: string;
  readonly receiver: OrderReceiver;
}

/** From the moment a POST is sent to the moment its `order.issued` arrives, all roles in one process. */
export async function benchDelivery(
  server: DatabaseServer,
  options: BenchOptions,
  cleanups: Cleanups,
): Promise<Section> {
  const bed = await prepare(server, options, cleanups);
  await placePaced(bed, 20);
  const paced: number[][] = [];
  const burst: number[][] = [];
  for (let round = 0; round < options.rounds; round++) {
    paced.push(await placePaced(bed, options.roundMs / PACED_EVERY_MS));
    burst.push(await placeBurst(bed));
    process.stderr.write(`delivery ${round + 1}/${options.rounds}\n`);
  }
  return {
    title: 'Order to webhook: POST /v1/orders sent until order.issued received, all roles in one process',
    rows: [
      ...figures('one order every 100 ms', paced, MOST_P95_MS),
      ...figures(`${BURST} orders at once`, burst),
      row(
        `${BURST} orders at once: until the last one`,
        'ms',
        burst.map((round) => Math.max(...round)),
      ),
    ],
    notes: ['One partner, one endpoint on loopback that answers 200 at once; a fresh Idempotency-Key each.'],
  };
}

async function prepare(server: DatabaseServer, options: BenchOptions, cleanups: Cleanups): Promise<Bed> {
  const databaseUrl = await server.createDatabase(DATABASE);
  const [partner] = await createPartners(server, DATABASE, 1);
  const receiver = cleanups.stopping(await OrderReceiver.start());
  const service = cleanups.stopping(
    await ServiceProcess.start({
      role: 'all',
      databaseUrl,
      env: { WEBHOOK_ALLOW_PRIVATE_TARGETS: 'true' },
      profile: options.profile ? 'all-delivery' : undefined,
    }),
  );
  const path = `/internal/v1/partners/${partner!.partnerId}/webhook-endpoints`;
  const answer = await fetch(service.adminUrl + path, {
    method: 'POST',
    body: JSON.stringify({ mode: 'sandbox', url: receiver.url }),
    headers: { authorization: `Bearer ${service.adminToken}`, 'content-type': 'application/json' },
  });
  if (answer.status !== 201) throw new Error(`POST ${path}: ${answer.status} ${await answer.text()}`);
  return { service, key: partner!.key, receiver };
}

/** Open loop: the next order does not wait for the one before it. */
async function placePaced(bed: Bed, count: number): Promise<number[]> {
  const orders: Promise<number>[] = [];
  for (let i = 0; i < count; i++) {
    orders.push(placeAndWait(bed));
    await sleep(PACED_EVERY_MS);
  }
  return Promise.all(orders);
}

function placeBurst(bed: Bed): Promise<number[]> {
  return Promise.all(Array.from({ length: BURST }, () => placeAndWait(bed)));
}

/** Milliseconds until the webhook of one order was here. */
async function placeAndWait({ service, key, receiver }: Bed): Promise<number> {
  const sentAtMs = performance.now();
  const answer = await fetch(`${service.apiUrl}/v1/orders`, {
    method: 'POST',
    body: '{"package_id":"pkg_fr_1gb_7d"}',
    headers: {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      'idempotency-key': randomUUID(),
    },
  });
  if (answer.status !== 202) throw new Error(`POST /v1/orders: ${answer.status} ${await answer.text()}`);
  const { data } = (await answer.json()) as { data: { id: string } };
  return (await receiver.issuedAtMs(data.id, PATIENCE_MS)) - sentAtMs;
}

function figures(name: string, rounds: readonly (readonly number[])[], mostP95Ms?: number): Row[] {
  const sorted = rounds.map((round) => [...round].sort((a, b) => a - b));
  const figure = (share: number): Row =>
    row(
      `${name}: p${share * 100}`,
      'ms',
      sorted.map((round) => quantile(round, share)),
    );
  return [figure(0.5), { ...figure(0.95), ...(mostP95Ms === undefined ? {} : { limit: mostP95Ms }) }];
}
