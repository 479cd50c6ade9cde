import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/** Below the ports that systems give to outgoing connections: nobody gets one of these by chance. */
const FIRST = 20_000;
/** A part for each of vitest's eight processes of tests (1 to 8), and for what runs outside of them; one port after the other. */
const SLICE = 1_300;
const SLICES = 9;
const sliceBegin = FIRST + (Number(process.env['VITEST_POOL_ID'] ?? 0) % SLICES) * SLICE;
let next = randomInt(SLICE);

/** A port of 127.0.0.1 that nobody listens on, for a process that must keep its port over a restart. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = sliceBegin + (next++ % SLICE);
    if (await isFree(port)) return port;
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, '127.0.0.1');
  try {
    await once(server, 'listening');
    return true;
  } catch {
    return false;
  } finally {
    server.close();
  }
}
