import { Ajv } from 'ajv';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Confirmations } from '../../cli/src/mcp/confirmations.js';
import { PartnerApi } from '../../cli/src/partner-api.js';
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

interface ToolDescription {
  readonly name: string;
  readonly inputSchema: { readonly properties: Record<string, { readonly enum?: readonly string[] }> };
  readonly outputSchema: object;
  readonly annotations: Record<string, unknown>;
}

async function listTools(...args: string[]): Promise<ToolDescription[]> {
  const [answer] = await converse(args, { id: 1, method: 'tools/list' });
  return (answer!.result as { tools: ToolDescription[] }).tools;
}

interface Structured {
  readonly preview: { readonly confirm_token: string; readonly unit_price: object } | null;
  readonly order?: { readonly id: string } | null;
  readonly topup?: object | null;
}

/** The structured result of a successful call, after a check against the tool's output schema. */
function structured(answer: Answer | undefined, tool: ToolDescription | undefined): Structured {
  const { structuredContent, content, isError } = answer!.result as {
    structuredContent: Structured;
    content: [{ text: string }];
    isError?: boolean;
  };
  expect(isError, content[0].text).toBeUndefined();
  expect(JSON.parse(content[0].text)).toEqual(structuredContent);
  const isValid = new Ajv({ strict: true }).compile(tool!.outputSchema);
  expect([isValid(structuredContent), isValid.errors]).toEqual([true, null]);
  return structuredContent;
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
  const { tools } = answers[1]!.result as { tools: ToolDescription[] };
  expect(tools.every(({ annotations }) => annotations['readOnlyHint'])).toBe(true);
  expect(tools.map(({ name }) => name)).toContain('search_catalog');
});

it('describes each tool: hints, values and results', async () => {
  const tools = await listTools('--allow-writes');
  const writes = tools.filter(({ annotations }) => !annotations['readOnlyHint']);
  expect(writes.map(({ name }) => name)).toEqual(['place_order', 'place_topup']);
  for (const { name, annotations, outputSchema } of tools) {
    const isWrite = writes.some((write) => write.name === name);
    expect(annotations).toMatchObject({
      readOnlyHint: !isWrite,
      destructiveHint: isWrite,
      idempotentHint: true,
      openWorldHint: false,
    });
    expect(outputSchema).toMatchObject({ type: 'object' });
  }
  const values = (name: string, argument: string): readonly string[] | undefined =>
    tools.find((tool) => tool.name === name)!.inputSchema.properties[argument]!.enum;
  expect(values('search_catalog', 'kind')).toEqual(['base', 'topup']);
  expect(values('list_orders', 'status')).toContain('partially_issued');
  expect(values('list_events', 'type')).toContain('esim.usage.threshold');
});

it('buys only when it is allowed to, after a preview, and never twice', async () => {
  const order = { package_id: 'pkg_fr_1gb_7d', quantity: 2 };
  const orders = async (): Promise<unknown[]> => (await partner.sandbox.get('/v1/orders')).body.data;
  const [refused] = await converse([], call(1, 'place_order', order));
  expect(refused?.error?.code).toBe(-32_602);
  const tool = (await listTools('--allow-writes')).find(({ name }) => name === 'place_order');
  const [previewed] = await converse(['--allow-writes'], call(1, 'place_order', order));
  const { preview, order: none } = structured(previewed, tool);
  expect([preview, none]).toEqual([
    expect.objectContaining({
      ...order,
      mode: 'sandbox',
      title: 'France 1 GB, 7 days',
      unit_price: { amount: 110, currency: 'USD' },
      total: { amount: 220, currency: 'USD' },
    }),
    null,
  ]);
  expect(await orders()).toEqual([]);

  // Also after a restart of the server.
  const { confirm_token } = preview!;
  const confirmed = { ...order, confirm_token };
  const changed = [
    { ...confirmed, quantity: 3 },
    { ...confirmed, confirm_token: `${confirm_token}x` },
    { ...confirmed, confirm_token: 'x' },
  ];
  const refusals = await converse(
    ['--allow-writes'],
    ...changed.map((args, nth) => call(nth, 'place_order', args)),
  );
  expect(refusals.map((answer) => resultOf(answer))).toEqual(
    changed.map(() => ({
      isError: true,
      value: expect.stringContaining('does not belong to these arguments'),
    })),
  );
  expect(await orders()).toEqual([]);
  const placed = await converse(
    ['--allow-writes'],
    call(1, 'place_order', confirmed),
    call(2, 'place_order', confirmed),
  );
  const [first, second] = placed.map((answer) => structured(answer, tool));
  expect(second!.order!.id).toBe(first!.order!.id);
  expect(await orders()).toMatchObject([{ id: first!.order!.id, quantity: 2 }]);
});

it('tops up within the previewed price', async () => {
  const placed = await placeOrder(partner.sandbox, { package_id: 'pkg_fr_1gb_7d' });
  const issued = await orderEnded(partner.sandbox, placed['id']);
  const topup = { esim_id: issued['esims'][0].esim_id as string, package_id: 'pkg_fr_topup_1gb_7d' };
  const tool = (await listTools('--allow-writes')).find(({ name }) => name === 'place_topup');
  const [previewed] = await converse(['--allow-writes'], call(1, 'place_topup', topup));
  const { confirm_token, unit_price } = structured(previewed, tool).preview!;
  const [bought] = await converse(['--allow-writes'], call(1, 'place_topup', { ...topup, confirm_token }));
  expect(structured(bought, tool).topup).toMatchObject({ esim_id: topup.esim_id, price: unit_price });
});

it('refuses a confirmation after ten minutes, and one of another key', () => {
  let now = Date.parse('2026-11-01T10:00:00Z');
  const keyed = (key: string): Confirmations => {
    const api = new PartnerApi({
      baseUrl: 'http://localhost',
      apiKey: key,
      signal: new AbortController().signal,
    });
    return new Confirmations(api, () => now);
  };
  const price = { amount: 110, currency: 'USD' };
  const args = { package_id: 'pkg_1' };
  const { confirm_token: token, expires_at } = keyed('svc_sk_test_1').issue('place_order', args, price);
  expect(expires_at).toBe('2026-11-01T10:10:00.000Z');
  expect(() => keyed('svc_sk_test_2').verify(token, 'place_order', args)).toThrow(/does not belong/);
  expect(() => keyed('svc_sk_test_1').verify(token, 'place_topup', args)).toThrow(/does not belong/);
  now += 599_999;
  expect(keyed('svc_sk_test_1').verify(token, 'place_order', args)).toMatchObject({ unitPrice: price });
  now += 1;
  expect(() => keyed('svc_sk_test_1').verify(token, 'place_order', args)).toThrow(/has expired/);
});

it('returns what its schemas promise, without install data, and refusals as results', async () => {
  const placed = await placeOrder(partner.sandbox, { package_id: 'pkg_fr_1gb_7d' });
  const issued = await orderEnded(partner.sandbox, placed['id']);
  const esim = { esim_id: issued['esims'][0].esim_id as string };
  const bought = await partner.sandbox.post('/v1/topups', { ...esim, package_id: 'pkg_fr_topup_1gb_7d' });
  const calls: readonly (readonly [string, object?])[] = [
    ['whoami'],
    ['search_catalog', { country: 'FR', limit: 3 }],
    ['get_package', { package_id: 'pkg_jp_2gb_daily', days: 3 }],
    ['list_orders', { status: 'issued' }],
    ['get_order', { order_id: placed['id'], wait_seconds: 1 }],
    ['list_esims', { order_id: placed['id'] }],
    ['get_esim', esim],
    ['get_usage', esim],
    ['list_topup_packages', esim],
    ['get_topup', { topup_id: bought.body.data.id }],
    ['list_events', { type: 'order.issued' }],
    ['get_balance'],
  ];
  const tools = await listTools();
  expect(calls.map(([name]) => name)).toEqual(tools.map(({ name }) => name));
  const answers = await converse([], ...calls.map(([name, args], nth) => call(nth, name, args)));
  for (const [nth, tool] of tools.entries()) structured(answers[nth], tool);
  expect(resultOf(answers[6]).value).toContain(esim.esim_id);
  expect(JSON.stringify(answers)).not.toMatch(/LPA:|smdp|matching_id|install_url/);
  const refusals = await converse(
    [],
    call(1, 'get_order', { order_id: 'ord_01M7SJ8EH4V8DA1TCQEKT9GHZ7' }),
    call(2, 'list_orders', { status: 'done' }),
    call(3, 'list_orders', { state: 'issued' }),
    call(4, 'get_order'),
    call(5, 'list_orders', { limit: 1_000 }),
    call(6, 'list_orders', { toString: 'x' }),
  );
  expect(refusals.map((answer) => resultOf(answer))).toEqual(
    [
      'not_found',
      'status must be one of pending, processing',
      'there is no argument state',
      'order_id is missing',
      'limit must be 1 to 100',
      'there is no argument toString',
    ].map((value) => ({ isError: true, value: expect.stringContaining(value) })),
  );
});
