import { Agent, request } from 'node:http';
import { createHistogram } from 'node:perf_hooks';
import { newId } from '../../src/common/ids.js';
import { signWebhook } from '../../src/webhooks/index.js';
import { answerParent } from '../child-link.js';
import type { LoadReport } from '../load/plan.js';
import type { RawPostsPlan } from './raw-posts.js';

/** As the service's sender. */
const agent = new Agent({ keepAlive: true, timeout: 4_000, maxFreeSockets: 256 });

answerParent<RawPostsPlan, LoadReport>(async (plan) => {
  const latencies = createHistogram();
  const statuses: Record<string, number> = {};
  const body = Buffer.from(plan.body);
  const measureFromMs = performance.now() + plan.warmupMs;
  const endAtMs = measureFromMs + plan.durationMs;
  let answeredInAll = 0;
  let answered = 0;
  let lastAtMs = 0;
  const caller = async (url: string): Promise<void> => {
    for (let nowMs = performance.now(); nowMs < endAtMs;) {
      const sentAtMs = nowMs;
      const status = await post(url, body, plan.secret);
      nowMs = performance.now();
      answeredInAll++;
      if (nowMs < measureFromMs) continue;
      answered++;
      lastAtMs = nowMs;
      statuses[status] = (statuses[status] ?? 0) + 1;
      latencies.record(Math.max(1, Math.round((nowMs - sentAtMs) * 1e6)));
    }
  };
  await Promise.all(plan.urls.flatMap((url) => Array.from({ length: plan.perUrl }, () => caller(url))));
  return {
    perSecond: answered / ((lastAtMs - measureFromMs) / 1_000),
    p50Ms: latencies.percentile(50) / 1e6,
    p95Ms: latencies.percentile(95) / 1e6,
    p99Ms: latencies.percentile(99) / 1e6,
    statuses,
    answeredInAll,
    // It is the server's process itself.
    generatorCpu: 0,
  };
});

function post(url: string, body: Buffer, secret: string): Promise<number> {
  const signature = signWebhook({
    timestampSeconds: Math.floor(Date.now() / 1_000),
    body,
    secrets: [secret],
  });
  const headers = {
    'Content-Type': 'application/json',
    'User-Agent': 'bench',
    'X-Service-Signature': signature,
    'X-Service-Event': 'esim.activated',
    'X-Service-Delivery': newId('dlv'),
  };
  return new Promise((resolve, reject) => {
    const sent = request(new URL(url), { method: 'POST', headers, agent });
    sent.on('response', (response) => {
      response.resume();
      response.on('end', () => resolve(response.statusCode ?? 0));
    });
    sent.on('error', reject);
    sent.end(body);
  });
}
