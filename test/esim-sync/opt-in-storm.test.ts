import { afterAll, beforeAll, expect, it } from 'vitest';
import { DOCUMENT_EVENT_TYPES } from '../../src/events/index.js';
import { eventually, startTestService } from '../harness/index.js';
import { size } from '../harness/size.js';
import { closeReceivers, receiverThatAnswers, registerEndpoint } from '../webhooks/support.js';
import { inUse, type LiveEsim, LiveWorld } from './live-world.js';

const ESIMS = size('OPT_IN_ESIMS', 20, 1_000);
const PER_ORDER = 10;
const TEST_MS = size('OPT_IN_MS', 600_000, 3_600_000);
const HOUR_MS = 3_600_000;

/** Events that each eSIM causes, as `type` and the value that tells two of one type apart. */
const EXPECTED = [
  ...['esim.activated', 'esim.profile.changed enabled'],
  ...['esim.usage.threshold 50', 'esim.usage.threshold 80'],
  ...['esim.usage.level 25', 'esim.usage.level 90'],
  ...['esim.expiring 72', 'esim.expiring 24'],
];

/** A poll whose worker lost its connection is repeated after its lease. */
const SETTINGS = { SWEEP_INTERVAL_MS: '200', LEASE_MS: '8000' };

let world: LiveWorld;
beforeAll(async () => {
  world = await LiveWorld.open(SETTINGS);
});
afterAll(async () => {
  await closeReceivers();
  await world.close();
});

const query = async <T extends object>(text: string, values: unknown[] = []): Promise<T[]> =>
  (await world.database.pool.query<T & Record<string, unknown>>(text, values)).rows;

/** Makes eSIMs due for a poll, except those that a worker holds. */
async function pollSoon(unless = 'false'): Promise<void> {
  await query(
    `UPDATE esims SET next_poll_at = now() WHERE id IN (
       SELECT id FROM esims WHERE mode = 'live' AND NOT coalesce(${unless}, false) AND next_poll_at > now()
         AND coalesce(poll_lease_until < now(), true)
       FOR UPDATE SKIP LOCKED)`,
  );
}

/** Ends this database's worker connections in the middle of whatever they do, as if the workers had died. */
async function cutOffWorkers(): Promise<void> {
  await query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
     WHERE datname = current_database() AND application_name LIKE '%worker%'`,
  );
}

it(
  `sends each new event once over ${ESIMS} eSIMs of polls, callbacks and restarts, to its subscribers alone`,
  async () => {
    const { partnerId } = (await query<{ partnerId: string }>('SELECT id AS "partnerId" FROM partners'))[0]!;
    const receiver = await receiverThatAnswers(200);
    const register = (fields: object) =>
      registerEndpoint(world.service, partnerId, { mode: 'live', url: receiver.url, ...fields });
    const endpoints = {
      byDefault: await register({ usage_levels: [25, 90] }),
      every: await register({ event_types: ['*'], usage_levels: [25, 90] }),
      some: await register({ event_types: ['esim.expiring', 'esim.usage.level'], usage_levels: [90] }),
    };
    const esims: LiveEsim[] = [];
    while (esims.length < ESIMS) esims.push(...(await world.issue('esim_access', PER_ORDER)));
    const url = world.callbackUrl('esim_access');
    world.esimAccess.control({ callbacks: { url, delayMs: 100, copies: 2, disorder: true } });

    const steps: readonly [object, string][] = [
      [inUse(0.3), 'used_bytes > 0.29 * total_bytes'],
      [inUse(0.6), 'used_bytes > 0.59 * total_bytes'],
      [inUse(0.95), 'used_bytes > 0.94 * total_bytes'],
      [{ expiredTimeMs: Date.now() + 70 * HOUR_MS }, `expires_at < now() + interval '71 hours'`],
      [{ expiredTimeMs: Date.now() + 20 * HOUR_MS }, `expires_at < now() + interval '21 hours'`],
    ];
    for (const [change, condition] of steps) {
      // A second worker comes and goes, and both lose their connections in the middle of the work.
      const worker = await startTestService({ role: 'worker', database: world.database, env: SETTINGS });
      for (const esim of esims) world.change(esim, change);
      // Polls meet the callbacks.
      await pollSoon();
      await cutOffWorkers();
      await worker.stop();
      await eventually(`every eSIM has ${condition}, and no warning is due`, async () => {
        const rest = await query(
          `SELECT 1 FROM esims WHERE mode = 'live' AND NOT (${condition} AND coalesce(expiry_warning_at > now(), true))`,
        );
        if (rest.length > 0) await pollSoon(condition);
        return rest.length === 0;
      });
    }

    const counts = await query<{ what: string; esims: number; events: number }>(
      `SELECT trim(concat_ws(' ', type, d->>'threshold_percent', d->>'percent', d->>'hours_left', d->>'profile_status')) AS what,
            count(DISTINCT d->>'esim_id')::int AS esims, count(*)::int AS events
     FROM events, LATERAL (SELECT (body::jsonb)->'data' AS d) AS data
     WHERE type LIKE 'esim.%' GROUP BY 1`,
    );
    expect(counts.toSorted((a, b) => (a.what < b.what ? -1 : 1))).toEqual(
      EXPECTED.toSorted().map((what) => ({ what, esims: esims.length, events: esims.length })),
    );

    const owed = await query<{ endpoint: string; type: string; deliveries: number; events: number }>(
      `SELECT endpoint_id AS endpoint, event_type AS type, count(*)::int AS deliveries,
            count(DISTINCT event_id)::int AS events
     FROM webhook_deliveries WHERE kind = 'event' AND event_type <> 'catalog.changed' GROUP BY 1, 2`,
    );
    expect(owed.filter(({ deliveries, events }) => deliveries !== events)).toEqual([]);
    const recorded = await query<{ type: string; events: number }>(
      `SELECT type, count(*)::int AS events FROM events WHERE mode = 'live' AND type <> 'catalog.changed' GROUP BY type`,
    );
    const eventsOf = new Map(recorded.map(({ type, events }) => [type, events]));
    const typesOf = ({ id }: { readonly id: string }): Record<string, number> =>
      Object.fromEntries(owed.flatMap((row) => (row.endpoint === id ? [[row.type, row.deliveries]] : [])));
    const all = Object.fromEntries(eventsOf);
    expect(typesOf(endpoints.every)).toEqual(all);
    const documented: readonly string[] = DOCUMENT_EVENT_TYPES;
    expect(typesOf(endpoints.byDefault)).toEqual(
      Object.fromEntries([...eventsOf].filter(([type]) => documented.includes(type))),
    );
    expect(typesOf(endpoints.some)).toEqual({
      'esim.expiring': 2 * esims.length,
      'esim.usage.level': esims.length,
    });
    await eventually('every delivery has ended', async () => {
      const open = await query(`SELECT 1 FROM webhook_deliveries WHERE status = 'pending' LIMIT 1`);
      return open.length === 0;
    });
  },
  TEST_MS,
);
