import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { MAGIC_PACKAGES } from '../../src/catalog/index.js';
import { SecretBox } from '../../src/infra/crypto/index.js';
import {
  type EsimProvider,
  ProviderOutcomeUnknown,
  ProviderUnavailable,
  type LiveProvider,
} from '../../src/providers/index.js';
import { SandboxProvider } from '../../src/providers/sandbox/sandbox-provider.js';
import { SandboxProviderRepository } from '../../src/providers/sandbox/sandbox-provider.repository.js';
import {
  createTestDatabase,
  startTestService,
  type TestDatabase,
  type TestService,
} from '../harness/index.js';
import { describeConformance, type ProviderSim, type ProviderWorld } from './conformance.js';
import { findParts, NOTHING } from './support-conformance.js';
import { place } from './provider-world.js';

let service: TestService;
let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase();
  service = await startTestService({ database, role: 'admin' });
});
afterAll(async () => {
  await service.stop();
  await database.drop();
});

/** Simulates a lossy network for the sandbox provider, which runs in the same process. */
class LossyWire {
  lostAfter = 0;
  lostBefore = 0;
  busy = 0;
  soldOut = false;

  constructor(private readonly inner: SandboxProvider) {}

  get provider(): LiveProvider {
    const { inner } = this;
    const wired: EsimProvider = {
      name: inner.name,
      // Long enough for a busy machine.
      timeoutMs: 20_000,
      readLagMs: inner.readLagMs,
      repeats: inner.repeats,
      controlEsim: null,
      placeOrder: (request, placement, signal) => {
        const packageId = this.soldOut ? MAGIC_PACKAGES.outOfStock : request.packageId;
        return this.carry(() => inner.placeOrder({ ...request, packageId }, placement, signal));
      },
      findOrder: (request) => this.answer(() => inner.findOrder(request)),
      findParts: (request) => this.answer(() => inner.findParts(request)),
      cancelOrder: (request) => this.answer(() => inner.cancelOrder(request)),
      findCancelStatuses: (request) => this.answer(() => inner.findCancelStatuses(request)),
      placeTopup: (request) => this.carry(() => inner.placeTopup(request)),
      findTopup: (request) => this.answer(() => inner.findTopup(request)),
    };
    return wired as LiveProvider;
  }

  private async carry<T>(call: () => Promise<T>): Promise<T> {
    if (this.lostBefore > 0) {
      this.lostBefore--;
      throw new ProviderOutcomeUnknown();
    }
    const answer = await this.answer(call);
    if (this.lostAfter === 0) return answer;
    this.lostAfter--;
    throw new ProviderOutcomeUnknown();
  }

  private async answer<T>(call: () => Promise<T>): Promise<T> {
    if (this.busy > 0) {
      this.busy--;
      throw new ProviderUnavailable(10);
    }
    return call();
  }
}

async function count(text: string, reference: string): Promise<number> {
  const { rows } = await database.pool.query<{ n: number }>(`SELECT (${text})::int AS n`, [reference]);
  return rows[0]!.n;
}

const COUNTS = {
  bought: `SELECT coalesce(sum(quantity), 0) FROM sandbox_upstream_orders WHERE reference = $1 AND outcome = 'provisioned'`,
  canceled: `SELECT coalesce(sum(quantity), 0) FROM sandbox_upstream_orders WHERE reference = $1 AND canceled_at IS NOT NULL`,
  toppedUp: 'SELECT count(*) FROM sandbox_upstream_topups WHERE reference = $1',
};

function simOf(wire: LossyWire): ProviderSim {
  const done = (): Promise<void> => Promise.resolve();
  return {
    purchasesOf: (reference) => count(COUNTS.bought, reference),
    canceledOf: (reference) => count(COUNTS.canceled, reference),
    topupsOf: (reference) => count(COUNTS.toppedUp, reference),
    dropAnswersAfterCommit: (n) => ((wire.lostAfter = n), done()),
    dropAnswersBeforeCommit: (n) => ((wire.lostBefore = n), done()),
    refuseAsBusy: (n) => ((wire.busy = n), done()),
    answerGarbage: () => Promise.reject(new Error('no wire, no garbage')),
    outOfStock: (on) => ((wire.soldOut = on), done()),
  };
}

function makeWorld(): Promise<ProviderWorld> {
  const secrets = new SecretBox({ secretKeys: [{ id: 'test', key: randomBytes(32) }] });
  const { manager } = service.process.resources.dataSource;
  const wire = new LossyWire(new SandboxProvider(new SandboxProviderRepository(manager, secrets)));
  const nothing = { micros: 0, currency: 'USD' };
  return Promise.resolve({
    provider: wire.provider,
    anotherProvider: () =>
      new LossyWire(new SandboxProvider(new SandboxProviderRepository(manager, secrets))).provider,
    sim: simOf(wire),
    basePackage: { upstreamPackageId: 'pkg_fr_1gb_7d', unitCost: nothing },
    topupPackage: { upstreamPackageId: 'pkg_fr_topup_1gb_7d', unitCost: nothing },
    close: () => Promise.resolve(),
  });
}

// The sandbox provider only provisions. It has no list, no readings and no callbacks.
describeConformance('the sandbox provider', makeWorld, { provisioningOnly: true });

it('shows support that a slow sandbox order is in progress', async () => {
  const { provider } = await makeWorld();
  const slow = {
    packageId: MAGIC_PACKAGES.slow,
    upstreamPackageId: MAGIC_PACKAGES.slow,
    days: null,
    unitCost: null,
  };
  const order = { ...slow, reference: 'prv_slow', quantity: 2, acceptedAt: new Date() };
  await place(provider, order);
  expect(await findParts(provider, order)).toEqual({ ...NOTHING, running: 2 });
});
