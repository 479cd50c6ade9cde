import { describe, expect, it } from 'vitest';
import type { ResolveAddresses } from '../../src/infra/network/resolve-addresses.js';
import {
  type AttemptResult,
  describeFailure,
  type FailureClass,
} from '../../src/webhooks/worker/attempt-result.js';
import { http, raw } from './sending/receivers.js';
import { send, senderWith } from './sending/sender.js';

const at =
  (...list: string[]): ResolveAddresses =>
  () =>
    Promise.resolve(list.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })));

/** One way to each class; the compiler asks for every class there is. */
const WAYS: Record<FailureClass, () => Promise<AttemptResult>> = {
  dns: () => {
    const resolve = () => Promise.reject(Object.assign(new Error('x'), { code: 'ENOTFOUND' }));
    return send(senderWith({ resolve }), 'http://partner.test/');
  },
  connect: () => send(senderWith(), 'http://127.0.0.1:1/'),
  tls: async () => {
    const url = await http((_request, response) => void response.end());
    return send(senderWith(), url.replace('http:', 'https:'));
  },
  timeout: async () => send(senderWith({ timeoutMs: 150 }), await raw(() => undefined)),
  http_status: async () =>
    send(senderWith(), await http((_request, response) => void response.writeHead(410).end())),
  target_refused: () => {
    const sender = senderWith({ allowPrivateTargets: false, resolve: at('10.0.0.1') });
    return send(sender, 'https://partner.test/');
  },
  protocol: async () => send(senderWith(), await raw((socket) => void socket.write('SSH-2.0-x\r\n'))),
};

describe('every class of failure', () => {
  it.each(Object.entries(WAYS))('%s', async (failureClass, fail) => {
    const result = await fail();
    expect(result).toMatchObject({ outcome: 'failed', responseBody: null, reusedConnection: false });
    expect(result.error).toMatch(new RegExp(`^${failureClass}(: [A-Z][A-Z0-9_]+)?$`));
    expect(result.statusCode).toBe(failureClass === 'http_status' ? 410 : null);
    expect(result.responseHeaders === null).toBe(failureClass !== 'http_status');
  });

  it('connect: also when several addresses were tried, of which none is named', async () => {
    const sender = senderWith({ resolve: at('127.0.0.1', '::1', '127.0.0.2') });
    const result = await send(sender, 'http://partner.test:1/');
    expect(result.error).toBe('connect: ECONNREFUSED');
    expect(JSON.stringify(result)).not.toMatch(/127\.0|::1/);
  });

  it('never repeats what an error says, only a code that looks like one', () => {
    const inner = Object.assign(new Error('connect 10.0.0.1:22'), { code: '10.0.0.1', address: '10.0.0.1' });
    expect(describeFailure(inner)).toBe('protocol');
    expect(describeFailure('10.0.0.1')).toBe('protocol');
    expect(describeFailure(null)).toBe('protocol');
  });
});
