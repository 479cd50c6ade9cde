import { parseArgs } from 'node:util';
import { startZenditSimulator } from './simulator.ts';

/** `node simulators/zendit/main.ts --port 0 [--host 127.0.0.1] [--state file] [--api-key key]` */
const { values } = parseArgs({
  options: {
    port: { type: 'string', default: '0' },
    host: { type: 'string', default: '127.0.0.1' },
    state: { type: 'string' },
    'api-key': { type: 'string' },
  },
});

const simulator = await startZenditSimulator({
  port: Number(values.port),
  host: values.host,
  statePath: values.state ?? null,
  ...(values['api-key'] === undefined ? {} : { apiKey: values['api-key'] }),
});
process.stdout.write(`${JSON.stringify({ port: simulator.port })}\n`);
for (const signal of ['SIGTERM', 'SIGINT'] as const)
  process.once(signal, () => void simulator.close().then(() => process.exit(0)));
