import { it } from 'vitest';
import { Pool } from 'pg';
import { pino } from 'pino';
import { BufferedCallRecorder } from '../../../src/call-log/buffered-call-recorder.js';
import { CallLines } from '../../../src/call-log/call-lines.js';
import { CallRowsRepository } from '../../../src/call-log/call-rows.repository.js';
import { createLogger } from '../../../src/infra/logging/index.js';
import { createTestDatabase } from '../../harness/index.js';
import { finishedCall } from '../finished-call.js';

it('perf', async () => {
  const database = await createTestDatabase();
  const edge = new Pool({ connectionString: database.url, max: 2 });
  const rows = new CallRowsRepository(edge);
  await rows.insert([finishedCall()]);
  for (const size of [100, 500, 2000]) {
    const calls = Array.from({ length: size }, () => finishedCall());
    const n = Math.round(40_000 / size);
    for (let i = 0; i < 5; i++) await rows.insert(calls);
    const cpu = process.cpuUsage();
    const t = performance.now();
    for (let i = 0; i < n; i++) await rows.insert(calls);
    const used = process.cpuUsage(cpu);
    console.log(size, 'wall us/row', ((performance.now() - t) * 1000 / (n * size)).toFixed(2), 'js cpu us/row', ((used.user + used.system) / (n * size)).toFixed(2));
  }
  const logger = createLogger('info', 'x', pino.destination({ dest: '/dev/null', sync: false, minLength: 4096 }));
  const recorder = new BufferedCallRecorder(new CallLines(logger), { insert: async () => {}, insertMissing: async () => {} } as never, { touch: async () => {} } as never, logger);
  const calls = Array.from({ length: 200_000 }, () => finishedCall());
  let t = performance.now();
  let inRecord = 0;
  for (let i = 0; i < calls.length; i += 50) {
    const a = performance.now();
    for (let j = i; j < i + 50; j++) recorder.record(calls[j]!);
    inRecord += performance.now() - a;
    await new Promise((r) => setImmediate(r));
  }
  await recorder.close();
  console.log('record() us', (inRecord * 1000 / calls.length).toFixed(3), 'all without db us', ((performance.now() - t) * 1000 / calls.length).toFixed(2));
  await edge.end();
  await database.drop();
}, 120_000);
