import { randomInt } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Random } from '../../chaos/random.js';
import { newId } from '../../src/common/ids.js';
import {
  createTestDatabase,
  type HttpClient,
  startTestService,
  type TestDatabase,
  type TestPartner,
  type TestService,
} from '../harness/index.js';
import type { Json } from '../harness/order-steps.js';
import { size } from '../harness/size.js';

const STATES = size('ACTION_STATES', 300, 10_000);
const AT_ONCE = 8;
const SEED = Number(process.env['ACTION_SEED'] ?? randomInt(2 ** 31));
const ACTIONS = ['suspend', 'resume', 'revoke', 'cancel', 'replace'] as const;
type Action = (typeof ACTIONS)[number];

const random = new Random(SEED);
let database: TestDatabase;
let front: TestService;
let office: TestService;
let partner: TestPartner;
let api: HttpClient;

// Without a worker, so that no state changes by itself.
beforeAll(async () => {
  console.log(`ACTION_SEED=${SEED}`);
  database = await createTestDatabase();
  const env = {
    SANDBOX_QUOTA_PER_DAY: '1000000',
    RATE_LIMIT_PER_MINUTE: '600000',
    RATE_LIMIT_BURST: '10000',
  };
  [front, office] = await Promise.all([
    startTestService({ role: 'api', database, env }),
    startTestService({ role: 'admin', database, env }),
  ]);
  partner = await office.createPartner();
  api = front.partnerApi(await office.createKey(partner.id, 'sandbox'));
});
afterAll(async () => {
  await front.stop();
  await office.stop();
  await database.drop();
});

const pick = <T>(values: readonly T[]): T => random.pick(values);
const time = (...hours: readonly (number | null)[]): string | null => {
  const hour = pick(hours);
  return hour === null ? null : new Date(Date.now() + hour * 3_600_000).toISOString();
};

interface State {
  readonly orderId: string;
  readonly esims: readonly Json[];
}

/** Inserts an order in a random state, with one to three eSIMs and their top-ups. */
async function insertState(): Promise<State> {
  const orderId = newId('ord');
  const count = random.between(1, 3);
  const orderStatus = pick(['issued', 'issued', 'issued', 'partially_issued', 'canceling', 'canceled']);
  const provider = pick(['sandbox', 'sandbox', 'sandbox', 'zendit']);
  await database.pool.query(
    `INSERT INTO orders (id, partner_id, mode, status, package_id, quantity, quantity_issued, unit_price_amount, currency,
                         provider, provider_reference, upstream_package_id, accepted_request_id, validity_days,
                         activation_policy)
     VALUES ($1, $2, 'sandbox', $3, 'pkg_fr_1gb_7d', $4, $4, 110, 'USD', 'sandbox', $1, 'pkg_fr_1gb_7d', 'req_1', 7,
             'on_first_use')`,
    [orderId, partner.id, orderStatus, count],
  );
  const calm = random.chance(1 / 3);
  const esims = Array.from({ length: count }, () => ({
    id: newId('esim'),
    status: pick(
      calm
        ? ['issued', 'issued', 'suspended']
        : ['issued', 'issued', 'active', 'depleted', 'expired', 'suspended', 'canceled'],
    ),
    profile: pick(calm ? ['released'] : ['released', 'released', 'downloaded', 'enabled', 'unknown']),
    pending: pick(calm ? [null] : [null, null, null, null, 'suspend', 'resume', 'revoke', 'replace']),
    installBy: time(null, 1, 50, 4_000, calm ? 7 : -1),
    expiresAt: time(null, null, 20, calm ? 9 : -2),
    activatedAt: time(null, null, -30),
    plans: pick(['[]', '[]', '[{"status":"queued"}]']),
    topup: pick(calm ? [null] : [null, null, null, 'failed', 'completed', 'pending']),
  }));
  for (const esim of esims) {
    await database.pool.query(
      `INSERT INTO esims (id, partner_id, mode, order_id, package_id, iccid, status, profile_status, install_secrets,
                          unlimited, total_bytes, usage_source, validity_days, activation_policy, provider,
                          provider_esim_id, pending_action, install_by, expires_at, activated_at, plans)
       VALUES ($1, $2, 'sandbox', $3, 'pkg_fr_1gb_7d', '8910300000001234567', $4, $5, '', false, 1000, 'simulated', 7,
               'on_first_use', $6, $1, $7, $8, $9, $10, $11)`,
      [
        ...[esim.id, partner.id, orderId, esim.status, esim.profile, provider, esim.pending],
        ...[esim.installBy, esim.expiresAt, esim.activatedAt, esim.plans],
      ],
    );
    if (esim.topup !== null)
      await database.pool.query(
        `INSERT INTO topups (id, partner_id, mode, esim_id, iccid, package_id, status, price_amount, currency,
                             validity_added_days, provider, provider_reference, upstream_package_id, accepted_request_id, completed_at, failed_at, failure_code)
         VALUES ($1, $2, 'sandbox', $3, '8910300000001234567', 'pkg_b', $4, 1, 'USD', 1, 'sandbox', $1, 'pkg_b', 'req_1',
                 CASE WHEN $4 = 'completed' THEN now() END, CASE WHEN $4 = 'failed' THEN now() END,
                 CASE WHEN $4 = 'failed' THEN 'provider_rejected' END)`,
        [newId('top'), partner.id, esim.id, esim.topup],
      );
  }
  return { orderId, esims };
}

async function read({ orderId }: State): Promise<Json[]> {
  return (await api.get(`/v1/esims?order_id=${orderId}`)).body.data as Json[];
}

/** Whether the operation accepts the action. */
async function accepts(esim: Json, action: Action): Promise<boolean> {
  const path =
    action === 'cancel' ? `/v1/orders/${esim['order_id']}/cancel` : `/v1/esims/${esim['id']}/${action}`;
  const answer = await api.post(path);
  if (answer.status === 202) return true;
  const code = action === 'cancel' ? 'order_not_cancelable' : 'not_supported';
  expect([answer.status, answer.body.code], answer.text).toEqual([409, code]);
  return false;
}

/** The first end of the order's eSIMs, by the inserted rows. */
function firstEnd({ esims }: State): string | null {
  const ends = esims.flatMap(({ status, expiresAt, installBy }) =>
    status === 'canceled' ? [] : ((expiresAt ?? installBy ?? []) as string),
  );
  return ends.toSorted()[0] ?? null;
}

/** Requests one action that must be refused, and then one that must be accepted. Returns the latter. */
async function compare(state: State): Promise<Action | null> {
  const about = JSON.stringify(state);
  const shown = await read(state);
  for (const { actions, cancelable_until: until } of shown)
    expect(until, about).toBe(actions.includes('cancel') ? firstEnd(state) : null);
  const esim = pick(shown);
  const actions = esim['actions'] as Action[];
  // Canceling the order of a canceled eSIM would concern its other eSIMs.
  const isOfOthers = (action: Action) => action === 'cancel' && esim['status'] === 'canceled';
  const refused = ACTIONS.filter((action) => !actions.includes(action) && !isOfOthers(action));
  if (refused.length > 0) {
    const action = pick(refused);
    expect(await accepts(esim, action), `${action} ${about}`).toBe(false);
  }
  if (actions.length === 0) return null;
  const action = pick(actions);
  expect(await accepts(esim, action), `${action} ${about}`).toBe(true);
  // An action in progress excludes every other one, of the whole order if the order is concerned.
  for (const after of await read(state))
    if (after['id'] === esim['id'] || action === 'cancel' || action === 'replace')
      expect(after['actions'], `${action} ${about}`).toEqual([]);
  return action;
}

describe('actions and cancelable_until', () => {
  it(`agree with what the operations accept in ${STATES} random states`, { timeout: 0 }, async () => {
    const accepted = new Map<Action | null, number>();
    let left = STATES;
    const work = async (): Promise<void> => {
      while (left-- > 0) {
        const action = await compare(await insertState());
        accepted.set(action, (accepted.get(action) ?? 0) + 1);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    for (const action of [...ACTIONS, null])
      expect(accepted.get(action) ?? 0, `${action}`).toBeGreaterThan(STATES / 200);
  });
});
