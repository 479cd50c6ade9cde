import {
  createTestDatabase,
  eventually,
  type HttpClient,
  startReceiver,
  startTestService,
} from '../../harness/index.js';
import { RoleChild } from '../../harness/role-child.js';
import { startTraceCollector, type TraceCollector } from '../../harness/trace-collector.js';
import { FAST, LiveShop } from '../../live/shop.js';
import type { Upstream } from '../../live/upstream.js';

/** Webhook retry delays that a test can wait for. */
const SOON = { WEBHOOK_RETRY_DELAYS_MS: '200,200,200,200,200' };

/** API and worker as processes, with a provider's simulator and a trace collector. */
export class TracedShop {
  private constructor(
    readonly shop: LiveShop,
    readonly collector: TraceCollector,
    private readonly api: RoleChild,
    private readonly worker: RoleChild,
  ) {}

  static async open(upstream: Upstream, settings: Record<string, string> = {}): Promise<TracedShop> {
    const [database, collector] = await Promise.all([createTestDatabase(), startTraceCollector()]);
    const traces = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url };
    const env = { ...FAST, ...SOON, ...traces, ...settings, ...upstream.settings(upstream.url) };
    const [office, receiver, api, worker] = await Promise.all([
      startTestService({ role: 'admin', database, env }),
      startReceiver(),
      RoleChild.start({ role: 'api', database, env }),
      RoleChild.start({ role: 'worker', database, env }),
    ]);
    const shop = new LiveShop(database, office, receiver, [upstream], (key) => api.partnerApi(key));
    const traced = new TracedShop(shop, collector, api, worker);
    const visitor = await shop.buyer(0);
    await eventually('the catalog is there', async () => {
      const answer = await visitor.api.get(`/v1/catalog/${upstream.packageId}`);
      return answer.status === 200;
    });
    return traced;
  }

  /** The API process. */
  partnerApi(key: string): HttpClient {
    return this.api.partnerApi(key);
  }

  async close(): Promise<void> {
    await Promise.all([this.api.kill(), this.worker.kill()]);
    await this.shop.close();
    await this.collector.close();
  }
}
