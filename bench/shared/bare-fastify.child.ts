import type { AddressInfo } from 'node:net';
import fastify from 'fastify';
import { serveParent } from './child.js';

const api = { listen };
export type BareFastifyApi = typeof api;
serveParent(api);

/**
 * Serializes the payload for every request, without key check, rate limit or log.
 * @returns the base URL
 */
async function listen(path: string, payload: object): Promise<string> {
  const server = fastify({ logger: false });
  server.get(path, () => Promise.resolve(payload));
  await server.listen({ host: '127.0.0.1', port: 0 });
  return `http://127.0.0.1:${(server.server.address() as AddressInfo).port}`;
}
