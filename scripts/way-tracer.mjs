// Preloaded into a role by scripts/ways.mjs (`node --import`): counts, on request over IPC, which functions of the build
// have run. Counts of blocks are left out: a function that has run is enough.
import { Session } from 'node:inspector/promises';

const session = new Session();
session.connect();
await session.post('Profiler.enable');
await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });

/** Functions of dist/src that ran since the last question, as `file|name|offset` with how often; modules' own code is none. */
async function takeCounts() {
  const { result } = await session.post('Profiler.takePreciseCoverage');
  const counts = {};
  for (const { url, functions } of result) {
    const file = /\/dist\/(src\/.+)\.js$/.exec(url)?.[1];
    if (!file) continue;
    for (const { functionName, ranges } of functions) {
      const [{ startOffset, count }] = ranges;
      if (count > 0 && !(functionName === '' && startOffset === 0))
        counts[`${file}.ts|${functionName}|${startOffset}`] = count;
    }
  }
  return counts;
}

process.on('message', (id) => void takeCounts().then((counts) => process.send({ id, counts })));
// Only the stop signal ends the role, not an open channel.
process.channel?.unref();
