import { randomUUID } from 'node:crypto';
import { createHistogram } from 'node:perf_hooks';
import { Pool } from 'pg';
import { ulid } from '../../src/common/ids.js';
import { clientConfig, type DatabaseClient } from '../../src/infra/database/index.js';
import { answerParent } from '../child-link.js';
import type { LoadReport } from '../load/plan.js';
import { type Owner, type ParameterTemplate, type RawPlan, withoutPrefix } from './raw-transactions.js';

const pools = new Map<string, Pool>();

/** The transaction of a POST and nothing else: no HTTP, no framework, no ORM. */
answerParent<RawPlan, LoadReport>(async (plan) => {
  const pool = poolOf(plan);
  const owners = plan.owners.map(({ partnerId, keyId }) => ({
    partnerId: withoutPrefix(partnerId),
    keyId: withoutPrefix(keyId),
  }));
  let turn = 0;
  const latencies = createHistogram();
  const measureFromMs = performance.now() + plan.warmupMs;
  const endAtMs = measureFromMs + plan.durationMs;
  let answeredInAll = 0;
  let answered = 0;
  let lastAtMs = 0;
  const worker = async (): Promise<void> => {
    for (let nowMs = performance.now(); nowMs < endAtMs;) {
      const sentAtMs = nowMs;
      await runTransaction(pool, plan, owners[turn++ % owners.length]!);
      nowMs = performance.now();
      answeredInAll++;
      if (nowMs < measureFromMs) continue;
      answered++;
      lastAtMs = nowMs;
      latencies.record(Math.max(1, Math.round((nowMs - sentAtMs) * 1e6)));
    }
  };
  await Promise.all(Array.from({ length: plan.concurrency }, worker));
  return {
    perSecond: answered / ((lastAtMs - measureFromMs) / 1_000),
    p50Ms: latencies.percentile(50) / 1e6,
    p95Ms: latencies.percentile(95) / 1e6,
    p99Ms: latencies.percentile(99) / 1e6,
    statuses: {},
    answeredInAll,
    // It is the server's process itself.
    generatorCpu: 0,
  };
});

function poolOf({ databaseUrl, poolMax }: RawPlan): Pool {
  let pool = pools.get(databaseUrl);
  if (!pool) {
    const settings = { url: databaseUrl, applicationName: 'bench', connectTimeoutMs: 10_000 };
    pool = new Pool({ ...clientConfig(settings), max: poolMax, pipeline: true });
    pools.set(databaseUrl, pool);
  }
  return pool;
}

/** The strongest limit that there is: prepared statements, and the whole transaction in one round trip. */
async function runTransaction(pool: Pool, { statements }: RawPlan, owner: Owner): Promise<void> {
  const fresh: string[] = [];
  const client = await pool.connect();
  try {
    (client as unknown as DatabaseClient).joinWrites();
    await Promise.all(
      statements.map(({ name, text, parameters }) => {
        const values = parameters.map((parameter) => fill(parameter, fresh, owner));
        return client.query({ text, values, ...(name === null ? {} : { name }) });
      }),
    );
  } finally {
    client.release();
  }
}

/** The same slot is the same value everywhere in one transaction, and a new one in the next. */
function fill(template: ParameterTemplate, fresh: string[], owner: Owner): string | null {
  if (template === null) return null;
  let text = '';
  for (const part of template) {
    if (typeof part === 'string') text += part;
    else if ('owner' in part) text += owner[part.owner];
    else text += fresh[part.slot] ??= part.kind === 'ulid' ? ulid() : randomUUID();
  }
  return text;
}
