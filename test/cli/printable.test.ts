import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { CliUser, jsonLines } from './cli-process.js';

/**
 * Possible in a wholesaler's title or a key's name: colors, a cleared screen, a new title, reversed text, a forged
 * line.
 */
const HOSTILE =
  'France\u001B[31m\u001B[2J\u001B]0;owned\u0007\u009B31m\u202E1 GB\u2066\u200E\u2028\u0085\u007F\u0000\r\nerror: forged\uFEFF\uD800';
const OBEYED = /[\p{Cc}\p{Zl}\p{Zp}\p{Cs}]|(?![\u200C\u200D])\p{Cf}/u;

let server: Server;
let user: CliUser;

/** Starts a service with hostile text in every field. */
beforeAll(async () => {
  const money = { amount: 110, currency: 'USD' };
  const order = {
    ...{
      id: 'ord_1',
      status: HOSTILE,
      package_id: HOSTILE,
      quantity: 1,
      days: null,
      total: money,
      reference: HOSTILE,
    },
    esims: [{ esim_id: HOSTILE, iccid: HOSTILE, status: HOSTILE }],
    failure: { code: HOSTILE, reason: HOSTILE },
    created_at: HOSTILE,
  };
  const found = {
    ...{ id: 'pkg_1', title: HOSTILE, type: 'country', coverage: [HOSTILE], region: null, price: money },
    ...{ data_bytes: 1e9, unlimited: false, validity_days: 1, available: false },
    ...{ plan: { kind: 'total', days: null }, price_per_day: null },
  };
  const event = { id: 'evt_1', type: HOSTILE, created_at: HOSTILE, data: { name: HOSTILE } };
  const problem = {
    ...{ type: 't', title: 't', status: 409, code: 'conflict', detail: HOSTILE, retryable: false },
    request_id: HOSTILE,
    errors: [{ pointer: HOSTILE, code: 'c', message: HOSTILE }],
  };
  const answers: Record<string, [number, object]> = {
    '/v1/catalog': [200, { data: [found], has_more: false, next_cursor: null }],
    '/v1/orders/ord_1': [200, { data: order }],
    '/v1/orders': [200, { data: [order], has_more: true, next_cursor: HOSTILE }],
    '/v1/esims': [200, { data: [], has_more: true, next_cursor: '-AbC' }],
    '/v1/events': [200, { data: [event], has_more: true, next_cursor: HOSTILE }],
    '/v1/me': [200, { data: { partner_name: HOSTILE, mode: 'sandbox', key_id: HOSTILE } }],
  };
  server = createServer((request, response) => {
    const [status, body] = answers[new URL(request.url ?? '', 'http://x').pathname] ?? [409, problem];
    response.writeHead(status, { 'content-type': 'application/json', 'x-request-id': 'req_1' });
    response.end(JSON.stringify(body));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  user = new CliUser({ ESIM_API_KEY: `svc_sk_test_${'a'.repeat(32)}`, ESIM_BASE_URL: baseUrl });
});
afterAll(() => {
  user.remove();
  server.close();
});

const COMMANDS: readonly (readonly string[])[] = [
  ['catalog'],
  ['orders', 'list'],
  ['orders', 'get', 'ord_1'],
  // Process arguments are UTF-8 without NUL.
  ['orders', 'get', HOSTILE.replaceAll('\u0000', '').toWellFormed()],
  ['esims', 'get', 'esim_1'],
  ['events', 'list'],
  ['topups', 'place', 'esim_1', 'pkg_1'],
  ['doctor'],
];
const NAMED = COMMANDS.map((args) => [args.slice(0, 2).join(' '), args] as const);

describe('text from other parties', () => {
  it.each(NAMED)('moves no cursor and forges no line in esim %s', async (_name, args) => {
    const { stdout, stderr } = await user.run(args);
    const lines = `${stdout}${stderr}`.trimEnd().split('\n');
    expect(lines.filter((line) => OBEYED.test(line))).toEqual([]);
    expect(lines.filter((line) => line.startsWith('error: forged'))).toEqual([]);
    expect(lines.join('\n')).toMatch(/France\uFFFD|ord_1|evt_1/);
  });

  it.each(NAMED)('adds no color of its own to esim %s', async (_name, args) => {
    vi.stubEnv('FORCE_COLOR', '1');
    const { stdout, stderr } = await user.run(args).finally(() => vi.unstubAllEnvs());
    // Each of our own colors opens and closes around printable text.
    const own = /\u001B\[(1|31|32|33|90)m([^\u001B]*)\u001B\[(22|39)m/g;
    const lines = `${stdout}${stderr}`.replaceAll(own, '$2').trimEnd().split('\n');
    expect(lines.filter((line) => OBEYED.test(line))).toEqual([]);
  });

  it.each(NAMED)('is escaped, not dropped, in the JSON of esim %s', async (_name, args) => {
    const { stdout } = await user.run([...args, '--json']);
    const lines = stdout.trimEnd().split('\n');
    expect(lines.filter((line) => OBEYED.test(line))).toEqual([]);
    expect(jsonLines(stdout)).toHaveLength(lines.length);
    if (args[0] === 'catalog') expect(jsonLines(stdout)).toMatchObject([{ title: HOSTILE }]);
  });

  it('is escaped in MCP results', async () => {
    const call = { name: 'search_catalog', arguments: {} };
    const { stdout } = await user.run(['mcp'], {
      stdin: `${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: call })}\n`,
    });
    expect(stdout.trimEnd()).not.toMatch(OBEYED);
    expect(stdout).toContain('France');
  });
});

it('prints the next cursor as an option even if it begins with a dash', async () => {
  expect((await user.run(['esims', 'list'])).stderr).toBe('next page: --cursor=-AbC\n');
});
