import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/** Below the ports that systems give to outgoing connections: nobody gets one of these by chance. */
const RANGE = { min: 20_000, max: 32_000 };

/** A port of 127.0.0.1 that nobody listens on, for a process that must keep its port over a restart. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(RANGE.min, RANGE.max);
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
