import type { ChaosBed } from './bed.js';
import type { Load } from './load.js';
import type { RollingRestarts } from './rolling-restarts.js';
import type { Check } from './verdict.js';

/** How much later an answer may be while processes are replaced. */
const MOST_TIMES_P99 = 2;

/** What a rolling release may not do to partners; `missedPolls` of the feeds were not answered with a page. */
export function judgeRestarts(
  bed: ChaosBed,
  load: Load,
  restarts: RollingRestarts,
  missedPolls: number,
): readonly Check[] {
  const failed = [...load.failures].map(([what, times]) => `${times} x ${what}`);
  if (missedPolls > 0) failed.push(`${missedPolls} polls of a feed failed`);
  return [
    {
      promise: 'no call failed, none was asked to come again',
      breaches: failed,
      count: load.answers.length,
    },
    {
      promise: 'every process ended by itself, with exit code 0',
      breaches: restarts.faults,
      count: restarts.total,
    },
    noWebhookTwice(bed),
    latency(load, restarts),
  ];
}

/** A stop waits for the attempts that are under way: a good receiver gets everything once. */
function noWebhookTwice({ endpoints }: ChaosBed): Check {
  const times = endpoints.flatMap(({ receiver }) => [...receiver.events]);
  const breaches = times.filter(([, count]) => count > 1).map(([id, count]) => `${id} came ${count} times`);
  return { promise: 'every webhook came once', breaches, count: times.length };
}

function latency({ answers }: Load, restarts: RollingRestarts): Check {
  const byProcess = Map.groupBy(answers, ({ atMs }) => restarts.underWayAt(atMs));
  const otherwise = (byProcess.get(null) ?? []).filter(({ atMs }) => restarts.wasWarm(atMs));
  byProcess.delete(null);
  const during = [...byProcess.values()].flat();
  const [beside, alone] = [p99(during), p99(otherwise)];
  const figures = `p99 of POST /v1/orders ${beside.toFixed(0)} ms beside restarts, ${alone.toFixed(0)} ms otherwise`;
  console.log(figures);
  for (const [name, those] of byProcess) console.log(`  beside that of ${name}: ${p99(those).toFixed(0)} ms`);
  const breaches = beside > MOST_TIMES_P99 * alone ? [figures] : [];
  return { promise: 'p99 within twice of what it is without restarts', breaches, count: during.length };
}

function p99(answers: Load['answers']): number {
  const sorted = answers.map(({ ms }) => ms).sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length * 0.99)] ?? 0;
}
