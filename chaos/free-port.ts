import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/** Below the ephemeral ports, so that no outgoing connection uses one of these. */
const FIRST = 20_000;
/** One slice per vitest process (1 to 8) and one for code outside vitest. Ports are handed out in sequence. */
const SLICE = 1_300;
const SLICES = 9;
const sliceBegin = FIRST + (Number(process.env['VITEST_POOL_ID'] ?? 0) % SLICES) * SLICE;
let next = randomInt(SLICE);

/** A free port of 127.0.0.1, for a process that must keep its port across a restart. */
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
