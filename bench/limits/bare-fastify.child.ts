import type { AddressInfo } from 'node:net';
import fastify from 'fastify';
import { answerParent } from '../child-link.js';

/** The least that Fastify can do with this payload: no key, no limit, no log; serialized for every request. */
answerParent<{ path: string; payload: object }, { baseUrl: string }>(async ({ path, payload }) => {
  const server = fastify({ logger: false });
  server.get(path, () => Promise.resolve(payload));
  await server.listen({ host: '127.0.0.1', port: 0 });
  return { baseUrl: `http://127.0.0.1:${(server.server.address() as AddressInfo).port}` };
});
