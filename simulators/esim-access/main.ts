import { parseArgs } from 'node:util';
import { SIMULATOR_CREDENTIALS, startEsimAccessSimulator } from './simulator.ts';

/**
 * `node simulators/esim-access/main.ts --port 0 [--state <file>] [--rate 8]`. Prints `{"port":N}` once it listens. With
 * `--until-stdin-ends` it exits together with its parent process. Credentials come from SIM_ACCESS_CODE and
 * SIM_SIGNING_KEY; `--rate 0` disables the rate limit.
 */
const { values } = parseArgs({
  options: {
    port: { type: 'string', default: '0' },
    host: { type: 'string', default: '127.0.0.1' },
    state: { type: 'string' },
    rate: { type: 'string', default: '8' },
    'until-stdin-ends': { type: 'boolean', default: false },
  },
});

const simulator = await startEsimAccessSimulator({
  port: Number(values.port),
  host: values.host,
  stateFile: values.state ?? null,
  requestsPerSecond: Number(values.rate) || null,
  credentials: {
    accessCode: process.env.SIM_ACCESS_CODE ?? SIMULATOR_CREDENTIALS.accessCode,
    secretKey: process.env.SIM_SIGNING_KEY ?? SIMULATOR_CREDENTIALS.secretKey,
  },
});
process.stdout.write(`${JSON.stringify({ port: simulator.port })}\n`);
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    void simulator.close().then(() => process.exit(0));
  });
}
if (values['until-stdin-ends']) {
  process.stdin.resume();
  process.stdin.once('end', () => process.exit(0));
}
