import { once } from 'node:events';
import { createServer } from 'node:net';
import type { ListenAddress } from '../../config/index.js';

/** Tries each address for a moment, so that a taken port is told before a database is made. @throws EADDRINUSE */
export async function assertPortsAreFree(addresses: readonly ListenAddress[]): Promise<void> {
  for (const { host, port } of addresses) {
    const server = createServer().listen(port, host);
    await once(server, 'listening');
    server.close();
    await once(server, 'close');
  }
}
