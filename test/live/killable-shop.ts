import { createTestDatabase, startReceiver, startTestService, type TestDatabase } from '../harness/index.js';
import { RoleChild } from '../harness/role-child.js';
import { Gate } from './gate.js';
import { FAST, LiveShop } from './shop.js';
import type { Upstream } from './upstream.js';

/**
 * The read lag is at least the call timeout, as in production, so nothing is sent twice on a slow machine. Only a dead
 * process lets a lease of four seconds expire.
 */
const KILLABLE = {
  ...FAST,
  LEASE_MS: '4000',
  PROVIDER_READ_LAG_MS: '20000',
  PROVIDER_TIMEOUT_MS: '20000',
};

/** API and worker as processes, each with a gate to every provider. */
export class KillableShop {
  private constructor(
    readonly shop: LiveShop,
    readonly api: RoleChild,
    readonly worker: RoleChild,
    readonly gates: readonly Gate[],
    /** The environment of all processes. */
    readonly env: Readonly<Record<string, string>>,
  ) {}

  static async open(upstreams: readonly Upstream[], own?: TestDatabase): Promise<KillableShop> {
    const database = own ?? (await createTestDatabase());
    const gates = await Promise.all(upstreams.map((upstream) => Gate.open(upstream)));
    const settings = upstreams.map((upstream, i) => upstream.settings(gates[i]!.url));
    const env: Record<string, string> = Object.assign({}, KILLABLE, ...settings);
    const [office, receiver, api, worker] = await Promise.all([
      startTestService({ role: 'admin', database, env }),
      startReceiver(),
      RoleChild.start({ role: 'api', database, env }),
      RoleChild.start({ role: 'worker', database, env }),
    ]);
    const shop = new LiveShop(database, office, receiver, upstreams, (key) => api.partnerApi(key));
    await shop.catalogRead();
    return new KillableShop(shop, api, worker, gates, env);
  }

  async close(): Promise<void> {
    await Promise.all([this.api.kill(), this.worker.kill()]);
    await Promise.all(this.gates.map((gate) => gate.shutDown()));
    await this.shop.close();
  }
}
