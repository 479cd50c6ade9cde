import { Agent, get } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { AUTHENTICATED, startEdgeApp, type EdgeApp } from './edge-app.js';
import { expectProblem } from './expect-problem.js';
import { post, RawClient, request, until } from './raw-client.js';

let edge: EdgeApp;
const start = async (...options: Parameters<typeof startEdgeApp>): Promise<void> => {
  edge = await startEdgeApp(...options);
};
afterEach(() => edge.close());

describe('closing', () => {
  const slowThing = (): (() => void) => {
    const done = Promise.withResolvers<void>();
    edge.behavior.thing = async () => {
      await done.promise;
      return { slow: true };
    };
    return done.resolve;
  };

  it('ends idle keep-alive connections at once', async () => {
    await start();
    const agent = new Agent({ keepAlive: true });
    const headers = { authorization: 'Bearer good' };
    await new Promise((resolve) =>
      get({ port: edge.port, path: '/v1/things', agent, headers }, (res) => res.resume().on('end', resolve)),
    );
    const idle = new RawClient(edge.port);
    await sleep(20);
    const began = performance.now();
    await edge.close();
    expect(performance.now() - began).toBeLessThan(8_000);
    await idle.closed();
    agent.destroy();
  });

  it('lets calls in progress finish with connection: close, and ends with the last of them', async () => {
    await start();
    const finish = slowThing();
    const busy = new RawClient(edge.port).write(Buffer.concat([request(), request()]));
    await until(() => edge.seen.length === 2);
    const closing = edge.close();
    await sleep(50);
    await expect(new RawClient(edge.port).answer(300)).rejects.toThrow();
    finish();
    const answers = await busy.answers(2);
    expect(answers.map((one) => one.body)).toEqual(['{"slow":true}', '{"slow":true}']);
    expect(answers[1]?.headers.connection).toBe('close');
    await closing;
    expect(edge.records.map((one) => one.status)).toEqual([200, 200]);
  });

  it('returns 503 to calls that still arrive on an open connection, and 401 without a key', async () => {
    await start();
    const finish = Promise.withResolvers<void>();
    edge.behavior.thing = async (_request, reply) => {
      reply.hijack();
      reply.raw.writeHead(200, { 'content-length': '2' });
      reply.raw.write('{');
      await finish.promise;
      reply.raw.end('}');
    };
    const [one, other] = [new RawClient(edge.port), new RawClient(edge.port)];
    one.write(request());
    other.write(request());
    await until(() => one.text !== '' && other.text !== '');
    const closing = edge.close();
    await sleep(30);
    one.write(request({ path: '/v1/things/t1' }));
    other.write(request({ headers: { authorization: null } }));
    await until(() => edge.seen.length === 4);
    await sleep(10);
    finish.resolve();
    expectProblem((await one.answers(2))[1]!, 503, 'service_unavailable');
    expectProblem((await other.answers(2))[1]!, 401, 'unauthorized');
    await closing;
    expect(edge.records.map((record) => record.status).sort()).toEqual([200, 200, 401, 503]);
  });

  it('still serves a call that was at the gate when closing began', async () => {
    const decided = Promise.withResolvers<void>();
    await start({ authenticate: () => decided.promise.then(() => AUTHENTICATED) });
    const client = new RawClient(edge.port).write(request());
    await until(() => edge.seen.length === 1);
    const closing = edge.close();
    await sleep(30);
    decided.resolve();
    expect((await client.answer()).status).toBe(200);
    await closing;
  });

  it('does not wait for a body that never ends', async () => {
    await start({ requestTimeoutMs: 2_000 });
    const slow = new RawClient(edge.port).write(post('{"a":1}').subarray(0, -3));
    const head = new RawClient(edge.port).write('GET /v1/things HT');
    await until(() => edge.seen.length === 1);
    await sleep(20);
    const began = performance.now();
    await edge.close();
    expect(performance.now() - began).toBeLessThan(8_000);
    await slow.closed();
    await head.closed();
    expect(edge.records).toHaveLength(1);
  });
});
