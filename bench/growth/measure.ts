import { setTimeout as sleep } from 'node:timers/promises';
import type { GrowthBed } from './bed.js';
import { workerOperations } from './database-operations.js';
import { httpOperations } from './http-operations.js';
import { compare, type Comparison, isSlower, type Operation } from './operation.js';

/** Every operation on both databases, one after the other. */
export async function measureAll(
  small: GrowthBed,
  large: GrowthBed,
  samples: number,
): Promise<readonly Comparison[]> {
  const [ofSmall, ofLarge] = await Promise.all([small, large].map(operationsOf));
  const comparisons: Comparison[] = [];
  for (const [index, operation] of ofSmall!.entries()) {
    const comparison = await compare(operation, ofLarge![index]!, samples);
    comparisons.push(comparison);
    process.stderr.write(`${index + 1}/${ofSmall!.length} ${describe(comparison)}\n`);
  }
  const duringIndex = await compareDuringIndex(small, large, ofSmall![0]!, ofLarge![0]!, samples);
  process.stderr.write(`${describe(duringIndex)}\n`);
  return [...comparisons, duringIndex];
}

async function operationsOf(bed: GrowthBed): Promise<readonly Operation[]> {
  return [...(await httpOperations(bed)), ...workerOperations(bed)];
}

function describe(comparison: Comparison): string {
  const { name, failure } = comparison;
  if (failure !== undefined) return `${name}: FAILED, ${failure}`;
  return `${name}${isSlower(comparison) ? ': slower in the large database' : ''}`;
}

/** A migration builds its index beside the traffic: a POST must not wait for it, however large the table is. */
async function compareDuringIndex(
  small: GrowthBed,
  large: GrowthBed,
  postSmall: Operation,
  postLarge: Operation,
  samples: number,
): Promise<Comparison> {
  const building = new AbortController();
  const builds = [small, large].map((bed) => buildIndexes(bed, building.signal));
  try {
    const compared = await compare(postSmall, postLarge, samples);
    return { ...compared, name: `${compared.name} while CREATE INDEX CONCURRENTLY runs` };
  } finally {
    building.abort();
    await Promise.all(builds);
  }
}

/** Again and again: the small table's is done in no time. */
async function buildIndexes(bed: GrowthBed, stop: AbortSignal): Promise<void> {
  while (!stop.aborted) {
    await bed.query('CREATE INDEX CONCURRENTLY growth_orders_index ON orders (package_id, created_at)');
    await bed.query('DROP INDEX CONCURRENTLY growth_orders_index');
    await sleep(10);
  }
}
