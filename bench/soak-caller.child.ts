import { createHistogram } from 'node:perf_hooks';
import { serveParent } from './shared/child.js';
import { kindOf, ORDER, ORDERS_PATH, sendOk } from './shared/http.js';
import { nanoseconds, openLoop } from './shared/load.js';

/** Shares of 100 calls. The rest are portal calls. */
const ORDERS = 10;
const READS = 30;
const LISTS = 40;
const POLLS = 18;
const LIST_PATHS = ['orders?limit=25', 'esims?limit=25', 'orders?limit=25&status=issued', 'catalog'];

export interface CallerSettings {
  readonly apiUrl: string;
  readonly adminUrl: string;
  readonly adminToken: string;
  readonly partners: readonly { readonly partnerId: string; readonly key: string }[];
}

export interface CallReport {
  readonly calls: number;
  readonly seconds: number;
  readonly p95Ms: number;
  /** Number of failures by HTTP status or by a connection's error code. */
  readonly errors: Readonly<Record<string, number>>;
}

/** Simulates partners that order, read and poll, and an occasional portal user. */
const api = {
  /** Calls back to back from `connections` callers, as fast as the service responds. */
  press: (settings: CallerSettings, connections: number, durationMs: number): Promise<CallReport> =>
    tally(durationMs, async (isOver, call) => {
      const caller = async (): Promise<void> => {
        while (!isOver()) await call(settings);
      };
      await Promise.all(Array.from({ length: connections }, caller));
    }),
  /** Calls at a fixed rate, even if earlier calls are still running. */
  pace: (settings: CallerSettings, perSecond: number, durationMs: number): Promise<CallReport> =>
    tally(durationMs, (isOver, call) => openLoop(perSecond, isOver, () => call(settings))),
};
export type CallerApi = typeof api;
serveParent(api);

/** Latest order id by API key. */
const lastOrders = new Map<string, string>();
const cursors = new Map<string, string>();
let turn = 0;

async function tally(
  durationMs: number,
  run: (isOver: () => boolean, call: (settings: CallerSettings) => Promise<void>) => Promise<void>,
): Promise<CallReport> {
  const latencies = createHistogram();
  const errors: Record<string, number> = {};
  const startedAtMs = performance.now();
  await run(
    () => performance.now() - startedAtMs >= durationMs,
    async (settings) => {
      const sentAtMs = performance.now();
      await nextCall(settings).catch((error: unknown) => {
        errors[kindOf(error)] = (errors[kindOf(error)] ?? 0) + 1;
      });
      latencies.record(nanoseconds(performance.now() - sentAtMs));
    },
  );
  const seconds = (performance.now() - startedAtMs) / 1_000;
  return { calls: latencies.count, seconds, p95Ms: latencies.percentile(95) / 1e6, errors };
}

/** A shop's mix: many reads, some orders, a feed poller, and now and then the portal. */
async function nextCall({ apiUrl, adminUrl, adminToken, partners }: CallerSettings): Promise<void> {
  turn++;
  const { partnerId, key } = partners[turn % partners.length]!;
  const kind = (turn * 37) % 100;
  if (kind < ORDERS) {
    const { data } = await sendOk<{ data: { id: string } }>(apiUrl + ORDERS_PATH, key, ORDER);
    lastOrders.set(key, data.id);
  } else if (kind < ORDERS + READS) {
    const id = lastOrders.get(key);
    await sendOk(`${apiUrl}/v1/${id === undefined ? 'me' : `orders/${id}`}`, key);
  } else if (kind < ORDERS + READS + LISTS) {
    await sendOk(`${apiUrl}/v1/${LIST_PATHS[turn % LIST_PATHS.length]}`, key);
  } else if (kind < ORDERS + READS + LISTS + POLLS) {
    const cursor = cursors.get(key);
    const url = `${apiUrl}/v1/events?limit=100${cursor === undefined ? '' : `&after=${cursor}`}`;
    cursors.set(key, (await sendOk<{ next_cursor: string }>(url, key)).next_cursor);
  } else {
    await sendOk(`${adminUrl}/internal/v1/partners/${partnerId}/requests?limit=25`, adminToken);
  }
}
