import { afterAll, beforeAll, expect, it } from 'vitest';
import { orderEnded, placeOrder } from '../harness/order-steps.js';
import { startTestService, type TestPartner, type TestService } from '../harness/index.js';
import { CliUser, jsonLines } from './cli-process.js';

let service: TestService;
let partner: TestPartner;
let user: CliUser;

beforeAll(async () => {
  service = await startTestService();
  partner = await service.createPartner();
  user = new CliUser({ ESIM_API_KEY: partner.sandboxKey, ESIM_BASE_URL: service.process.api?.url ?? '' });
});
afterAll(async () => {
  user.remove();
  await service.stop();
});

interface Answer {
  readonly id: number | null;
  readonly result?: Record<string, unknown>;
  readonly error?: { readonly code: number };
}

/** Sends all requests and returns the responses. */
async function converse(args: readonly string[], ...lines: (object | string)[]): Promise<Answer[]> {
  const stdin = lines
    .map((line) => (typeof line === 'string' ? line : JSON.stringify({ jsonrpc: '2.0', ...line })))
    .join('\n');
  const finished = await user.run(['mcp', ...args], { stdin: `${stdin}\n` });
  expect(finished).toMatchObject({ code: 0, stderr: '' });
  return jsonLines(finished.stdout) as unknown as Answer[];
}

const call = (id: number, name: string, args: object = {}): object => ({
  id,
  method: 'tools/call',
  params: { name, arguments: args },
});

function resultOf(answer: Answer | undefined): { readonly isError: boolean; readonly value: string } {
  const { content, isError } = answer!.result as { content: [{ text: string }]; isError?: boolean };
  return { isError: isError ?? false, value: content[0].text };
}

it('speaks the protocol, and offers only tools that read', async () => {
  const answers = await converse(
    [],
    { id: 1, method: 'initialize', params: { protocolVersion: '2025-06-18' } },
    { method: 'notifications/initialized' },
    { id: 2, method: 'tools/list' },
    { id: 3, method: 'no/such' },
    'no JSON',
  );
  expect(answers.map(({ id, error }) => [id, error?.code])).toEqual([
    [1, undefined],
    [2, undefined],
    [3, -32_601],
    [null, -32_700],
  ]);
  expect(answers[0]!.result).toMatchObject({
    protocolVersion: '2025-06-18',
    serverInfo: { name: 'partner-esim' },
  });
  const { tools } = answers[1]!.result as {
    tools: { name: string; annotations: { readOnlyHint: boolean } }[];
  };
  expect(tools.every(({ annotations }) => annotations.readOnlyHint)).toBe(true);
  expect(tools.map(({ name }) => name)).toContain('search_catalog');
});

it('buys only when it is allowed to, and never twice', async () => {
  const order = { package_id: 'pkg_fr_1gb_7d', idempotency_key: 'mcp-intent-1' };
  const [refused] = await converse([], call(1, 'place_order', order));
  expect(refused?.error?.code).toBe(-32_602);
  expect((await partner.sandbox.get('/v1/orders')).body.data).toEqual([]);
  const placed = await converse(
    ['--allow-writes'],
    call(1, 'place_order', order),
    call(2, 'place_order', order),
  );
  expect(placed.map((answer) => resultOf(answer).isError)).toEqual([false, false]);
  expect((await partner.sandbox.get('/v1/orders')).body.data).toHaveLength(1);
});

it('shows a model an eSIM without its install data, and refusals as results', async () => {
  const placed = await placeOrder(partner.sandbox, { package_id: 'pkg_fr_1gb_7d' });
  const issued = await orderEnded(partner.sandbox, placed['id']);
  const esimId = issued['esims'][0].esim_id as string;
  const [esim, missing] = await converse(
    [],
    call(1, 'get_esim', { esim_id: esimId }),
    call(2, 'get_order', { order_id: 'ord_01M7SJ8EH4V8DA1TCQEKT9GHZ7' }),
  );
  expect(JSON.parse(resultOf(esim).value)).toMatchObject({ id: esimId, status: 'issued' });
  expect(resultOf(esim).value).not.toMatch(/LPA:|smdp|matching_id|install_url/);
  expect(resultOf(missing)).toEqual({ isError: true, value: expect.stringContaining('not_found') });
});
