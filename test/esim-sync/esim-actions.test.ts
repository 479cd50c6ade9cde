import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { BOOK_CHECKS } from '../../src/reconciliation/index.js';
import { actionsOfferedBy } from '../../src/providers/index.js';
import { EsimAccessProvider } from '../../src/providers/esim-access/esim-access-provider.js';
import { SandboxProvider } from '../../src/providers/sandbox/sandbox-provider.js';
import { ZenditProvider } from '../../src/providers/zendit/zendit-provider.js';
import { type ApiAnswer, eventually } from '../harness/index.js';
import { expectProblem } from '../harness/expect-problem.js';
import { topupsKnown } from '../harness/known-topups.js';
import { type Json, orderEnded } from '../harness/order-steps.js';
import { size } from '../harness/size.js';
import { breachesOf } from '../reconciliation/whole-books.js';
import { topupEnded } from '../topups/topup-steps.js';
import { inUse, type LiveEsim, LiveWorld } from './live-world.js';

const RUNS = size('ACTION_RACES', 5, 20);
const ERROR_CHECKS = BOOK_CHECKS.filter(({ severity }) => severity === 'error');
const ROUTES = { suspend: 'esim/suspend', resume: 'esim/unsuspend', revoke: 'esim/revoke' } as const;
type Action = keyof typeof ROUTES;

let world: LiveWorld;

beforeAll(async () => {
  const env = {
    SWEEP_INTERVAL_MS: '100',
    // Longer than a busy machine takes for a call. A lost call fails after both.
    PROVIDER_TIMEOUT_MS: '6000',
    PROVIDER_READ_LAG_MS: '0',
    RATE_LIMIT_PER_MINUTE: '60000',
  };
  world = await LiveWorld.open(env);
  await topupsKnown(world.database);
});
afterEach(async () => {
  world.esimAccess.control({ faults: { dropAfterCommit: 0, dropBeforeCommit: 0, busy: 0, refuse: null } });
  for (const check of ERROR_CHECKS)
    expect(await breachesOf(world.database.pool, check, 900_000), check.check).toEqual([]);
});
afterAll(() => world.close());

async function request(esim: LiveEsim, action: Action, body: object = {}): Promise<void> {
  const answer = await world.partner.post(`/v1/esims/${esim.id}/${action}`, body);
  expect(answer.status, answer.text).toBe(202);
  expect(answer.body.data).toMatchObject({ pending_action: action, actions: [] });
}

function settled({ id }: LiveEsim): Promise<Json> {
  return eventually(`eSIM ${id} has no pending action`, async () => {
    const esim = await world.device.read(id);
    return esim['pending_action'] === null ? esim : null;
  });
}

const calls = (action: Action): number => world.esimAccess.state().calls[ROUTES[action]] ?? 0;

async function controlEvents(esim: LiveEsim): Promise<string[]> {
  const types = (await world.device.events(esim.id)).map((event) => event['type'] as string);
  return types.filter((type) => ['esim.suspended', 'esim.resumed', 'esim.revoked'].includes(type));
}

async function inUseEsim(): Promise<LiveEsim> {
  const esim = await world.issueOne('esim_access');
  world.change(esim, inUse(0.1));
  await world.poll(esim);
  return esim;
}

describe('an action at eSIM Access', () => {
  it('is sent once, and announced once although polls report it too', async () => {
    const esim = await inUseEsim();
    for (const [action, status] of [
      ['suspend', 'suspended'],
      ['resume', 'active'],
      ['revoke', 'canceled'],
    ] as const) {
      const before = calls(action);
      await request(esim, action);
      expect(await settled(esim)).toMatchObject({ status, action_failure: null });
      if (status !== 'canceled') await world.poll(esim);
      expect(await world.device.read(esim.id)).toMatchObject({ status });
      expect(calls(action) - before).toBe(1);
    }
    expect(await controlEvents(esim)).toEqual(['esim.suspended', 'esim.resumed', 'esim.revoked']);
  });

  it.each(['suspend', 'revoke'] as const)(
    'is looked up and not sent again when the answer to %s is lost',
    async (action) => {
      const esim = await inUseEsim();
      const before = calls(action);
      world.esimAccess.control({ faults: { dropAfterCommit: 1 } });
      await request(esim, action);
      expect(await settled(esim)).toMatchObject({
        status: action === 'suspend' ? 'suspended' : 'canceled',
        action_failure: null,
      });
      expect(calls(action) - before).toBe(1);
      expect(await controlEvents(esim)).toHaveLength(1);
    },
  );

  it('fails visibly when a lost call had no effect, and can be requested again', async () => {
    const esim = await inUseEsim();
    const before = calls('suspend');
    world.esimAccess.control({ faults: { dropBeforeCommit: 1 } });
    await request(esim, 'suspend');
    expect(await settled(esim)).toMatchObject({
      status: 'active',
      action_failure: { action: 'suspend', code: 'provider_unavailable' },
    });
    expect(calls('suspend') - before).toBe(1);
    await request(esim, 'suspend');
    expect(await settled(esim)).toMatchObject({ status: 'suspended', action_failure: null });
    expect(await controlEvents(esim)).toEqual(['esim.suspended']);
  });

  it('fails visibly when the wholesaler refuses it', async () => {
    const esim = await inUseEsim();
    world.esimAccess.control({
      faults: { refuse: { path: 'esim/revoke', code: '200002', count: 1, after: 0 } },
    });
    await request(esim, 'revoke');
    expect(await settled(esim)).toMatchObject({
      status: 'active',
      action_failure: { action: 'revoke', code: 'provider_rejected' },
    });
    expect(await controlEvents(esim)).toEqual([]);
  });

  it('fails visibly when a lost call leaves an eSIM that the wholesaler no longer describes', async () => {
    const esim = await inUseEsim();
    const before = calls('suspend');
    world.esimAccess.control({ faults: { dropAfterCommit: 1 } });
    await request(esim, 'suspend');
    await eventually('the call was sent', () => calls('suspend') > before);
    // A status that the contract does not name.
    world.change(esim, { esimStatus: 'MISLAID' });
    // As a day later.
    await world.database.pool.query(
      `UPDATE esims SET action_sent_at = action_sent_at - interval '1 day', action_due_at = now() WHERE id = $1`,
      [esim.id],
    );
    expect(await settled(esim)).toMatchObject({
      action_failure: { action: 'suspend', code: 'provider_unavailable' },
    });
  });

  it('waits while the wholesaler is busy', async () => {
    const esim = await inUseEsim();
    world.esimAccess.control({ faults: { busy: 2 } });
    await request(esim, 'suspend');
    expect(await settled(esim)).toMatchObject({ status: 'suspended' });
  });

  it('is looked up after its worker died, and never sent again', async () => {
    const esim = await inUseEsim();
    const before = calls('suspend');
    // As a worker leaves it that dies between its claim and the answer.
    await world.database.pool.query(
      `UPDATE esims SET pending_action = 'suspend', action_sent_at = now(), action_due_at = now(), action_fence = 1
       WHERE id = $1`,
      [esim.id],
    );
    world.change(esim, { esimStatus: 'SUSPENDED' });
    expect(await settled(esim)).toMatchObject({ status: 'suspended' });
    expect(calls('suspend')).toBe(before);
    expect(await controlEvents(esim)).toEqual(['esim.suspended']);
  });
});

describe('a state that eSIM Access reports by itself', () => {
  it('is announced once, without a reason', async () => {
    const esim = await inUseEsim();
    for (const esimStatus of ['SUSPENDED', 'IN_USE', 'REVOKED']) {
      world.change(esim, { esimStatus });
      await world.poll(esim);
      if (esimStatus !== 'REVOKED') await world.poll(esim);
    }
    expect(await controlEvents(esim)).toEqual(['esim.suspended', 'esim.resumed', 'esim.revoked']);
    const events = (await world.device.events(esim.id)).slice(-3);
    expect(events.map(({ data }) => data.reason)).toEqual([null, null, null]);
    expect(await world.device.read(esim.id)).toMatchObject({ status: 'canceled', actions: [] });
  });
});

describe('Zendit', () => {
  it('offers none of the actions', async () => {
    const esim = await world.issueOne('zendit');
    expect((await world.device.read(esim.id))['actions']).toEqual(['cancel', 'replace']);
    expectProblem(await world.partner.post(`/v1/esims/${esim.id}/suspend`, {}), 409, 'not_supported');
  });

  it('and the other providers offer exactly what they can be called for', () => {
    expect(actionsOfferedBy('sandbox').length > 0).toBe('controlEsim' in SandboxProvider.prototype);
    expect(actionsOfferedBy('esim_access').length > 0).toBe('controlEsim' in EsimAccessProvider.prototype);
    expect(actionsOfferedBy('zendit').length > 0).toBe('controlEsim' in ZenditProvider.prototype);
  });
});

describe(`suspending in ${RUNS} races`, () => {
  it('and a top-up: each ends, and money matches what was added', async () => {
    for (let run = 0; run < RUNS; run++) {
      const esim = await inUseEsim();
      const [packages] = (await world.partner.get(`/v1/esims/${esim.id}/topup-packages?limit=1`)).body
        .data as Json[];
      expect(packages).toBeDefined();
      const [suspension, topup] = await Promise.all([
        world.partner.post(`/v1/esims/${esim.id}/suspend`, {}),
        world.partner.post('/v1/topups', { esim_id: esim.id, package_id: packages!['id'] }),
      ]);
      expect(suspension.status, suspension.text).toBe(202);
      expect([202, 409], topup.text).toContain(topup.status);
      expect(await settled(esim)).toMatchObject({ status: 'suspended' });
      if (topup.status === 202) await topupEnded(world.partner, topup.body.data.id as string);
      expect(await world.device.read(esim.id)).toMatchObject({ status: 'suspended' });
      expect(await controlEvents(esim)).toEqual(['esim.suspended']);
    }
  });

  it('and a poll: the eSIM is suspended, and announced once', async () => {
    for (let run = 0; run < RUNS; run++) {
      const esim = await inUseEsim();
      const [suspension] = await Promise.all([
        world.partner.post(`/v1/esims/${esim.id}/suspend`, {}),
        world.poll(esim),
        world.poll(esim),
      ]);
      expect(suspension.status, suspension.text).toBe(202);
      await settled(esim);
      await world.poll(esim);
      expect(await world.device.read(esim.id)).toMatchObject({ status: 'suspended' });
      expect(await controlEvents(esim)).toEqual(['esim.suspended']);
    }
  });

  it('and a cancellation: exactly one of them is accepted', async () => {
    for (let run = 0; run < RUNS; run++) {
      const esim = await world.issueOne('esim_access');
      const [suspension, cancellation]: ApiAnswer[] = await Promise.all([
        world.partner.post(`/v1/esims/${esim.id}/suspend`, {}),
        world.partner.post(`/v1/orders/${esim.orderId}/cancel`),
      ]);
      expect([suspension!.status, cancellation!.status].sort()).toEqual([202, 409]);
      const isSuspended = suspension!.status === 202;
      expect(await settled(esim)).toMatchObject({ action_failure: null });
      await eventually('the order is not canceling', async () => {
        const { status } = await orderEnded(world.partner, esim.orderId);
        return status !== 'canceling';
      });
      expect((await world.device.read(esim.id))['status']).toBe(isSuspended ? 'suspended' : 'canceled');
      expect(await controlEvents(esim)).toEqual(isSuspended ? ['esim.suspended'] : []);
    }
  });
});
