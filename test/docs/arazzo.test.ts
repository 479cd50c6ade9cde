import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestService, type TestPartner, type TestService } from '../harness/index.js';

interface Named {
  readonly name: string;
  readonly value: string;
}

interface Criterion {
  readonly condition: string;
}

interface Step {
  readonly stepId: string;
  readonly operationId: string;
  readonly parameters?: readonly (Named & { readonly in: 'path' | 'query' | 'header' })[];
  readonly requestBody?: { readonly contentType: string; readonly payload: unknown };
  readonly successCriteria: readonly Criterion[];
  readonly onFailure?: readonly {
    readonly type: string;
    readonly retryAfter: number;
    readonly retryLimit: number;
    readonly criteria: readonly Criterion[];
  }[];
  readonly outputs: Readonly<Record<string, string>>;
}

interface Workflow {
  readonly workflowId: string;
  readonly inputs: { readonly required: readonly string[] };
  readonly steps: readonly Step[];
  readonly outputs: Readonly<Record<string, string>>;
}

interface Description {
  readonly arazzo: string;
  readonly sourceDescriptions: readonly { readonly url: string }[];
  readonly workflows: readonly [Workflow];
}

interface OpenApi {
  readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly operationId: string }>>>>;
}

const readJson = (name: string): unknown => JSON.parse(readFileSync(name, 'utf8'));
const description = readJson('docs/openapi/quick-start.arazzo.json') as Description;
const openApi = readJson('docs/openapi/partner.json') as OpenApi;
const [workflow] = description.workflows;

/** The values that runtime expressions can refer to. */
interface Context {
  readonly inputs: Record<string, unknown>;
  readonly steps: Record<string, { readonly outputs: Record<string, unknown> }>;
  readonly statusCode?: number;
  readonly response?: { readonly body: unknown };
}

/**
 * The value of a runtime expression of Arazzo 1.0.1, such as `$response.body#/data/id`.
 * @throws Error for a value that does not exist
 */
function evaluate(expression: string, context: Context): unknown {
  const [source = '', pointer = ''] = expression.slice(1).split('#');
  const found = [...source.split('.'), ...pointer.split('/').slice(1)].reduce<unknown>(
    (at, key) => (at as Record<string, unknown> | undefined)?.[key],
    context,
  );
  if (found === undefined) throw new Error(`${expression} has no value`);
  return found;
}

/** Replaces the runtime expressions in a payload. */
function filled(payload: unknown, context: Context): unknown {
  if (typeof payload === 'string') return payload.startsWith('$') ? evaluate(payload, context) : payload;
  if (typeof payload !== 'object' || payload === null) return payload;
  return Object.fromEntries(
    Object.entries(payload).map(([name, value]) => [name, filled(value, context)] as const),
  );
}

/** Simple conditions: comparisons with a literal, joined by `||`. */
function isMet({ condition }: Criterion, context: Context): boolean {
  return condition.split(' || ').some((part) => {
    const [, left, right] = /^(\S+) == (\S+)$/.exec(part) ?? [];
    if (left === undefined || right === undefined) throw new Error(`cannot evaluate ${part}`);
    return String(evaluate(left, context)) === right.replaceAll("'", '');
  });
}

function outputsOf(outputs: Readonly<Record<string, string>>, context: Context): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(outputs).map(([name, expression]) => [name, evaluate(expression, context)]),
  );
}

let service: TestService;
let partner: TestPartner;

beforeAll(async () => {
  service = await startTestService();
  partner = await service.createPartner();
});
afterAll(() => service.stop());

async function send(step: Step, context: Context): Promise<Context> {
  const [route, method] = Object.entries(openApi.paths)
    .flatMap(([path, item]) => Object.keys(item).map((each) => [path, each] as const))
    .find(([path, each]) => openApi.paths[path]![each]!.operationId === step.operationId)!;
  const given = (where: string): [string, string][] =>
    (step.parameters ?? [])
      .filter((each) => each.in === where)
      .map(({ name, value }) => [name, String(filled(value, context))]);
  const path = given('path').reduce((at, [name, value]) => at.replace(`{${name}}`, value), route);
  expect(path).not.toContain('{');
  const body = step.requestBody;
  const url = new URL(service.process.api!.url + path);
  url.search = new URLSearchParams(given('query')).toString();
  const response = await fetch(url, {
    method: method.toUpperCase(),
    headers: {
      authorization: `Bearer ${partner.sandboxKey}`,
      ...(body === undefined ? {} : { 'content-type': body.contentType }),
      ...Object.fromEntries(given('header')),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(filled(body.payload, context)) }),
  });
  return { ...context, statusCode: response.status, response: { body: await response.json() } };
}

/** Runs a step, with its retries. @throws Error when its criteria are not met */
async function run(step: Step, context: Context): Promise<Record<string, unknown>> {
  for (let tries = 0; ; tries++) {
    const after = await send(step, context);
    if (step.successCriteria.every((each) => isMet(each, after))) return outputsOf(step.outputs, after);
    const retry = step.onFailure?.find(({ criteria }) => criteria.every((each) => isMet(each, after)));
    if (retry?.type !== 'retry' || tries >= retry.retryLimit)
      throw new Error(`${step.stepId}: ${after.statusCode} ${JSON.stringify(after.response)}`);
  }
}

/** Runs the workflow as an Arazzo runner does. */
async function runWorkflow(inputs: Record<string, unknown>): Promise<Record<string, unknown>> {
  const context: Context = { inputs, steps: {} };
  for (const step of workflow.steps) context.steps[step.stepId] = { outputs: await run(step, context) };
  return outputsOf(workflow.outputs, context);
}

describe('the Arazzo description of the quick start', () => {
  it('is Arazzo 1.0.1 over the OpenAPI document beside it', () => {
    expect([description.arazzo, description.sourceDescriptions[0]!.url]).toEqual(['1.0.1', './partner.json']);
    const known = Object.values(openApi.paths).flatMap((item) =>
      Object.values(item).map(({ operationId }) => operationId),
    );
    for (const { operationId } of workflow.steps) expect(known).toContain(operationId);
  });

  it('buys one eSIM, however often it runs with the same purchase', async () => {
    const inputs = { packageId: 'pkg_fr_1gb_7d', purchaseId: `arazzo-${randomUUID()}` };
    expect(Object.keys(inputs)).toEqual(workflow.inputs.required);
    const bought = await runWorkflow(inputs);
    expect(bought).toEqual({
      orderId: expect.stringMatching(/^ord_/),
      esimId: expect.stringMatching(/^esim_/),
      activationCode: expect.stringMatching(/^LPA:1\$/),
    });
    expect(await runWorkflow(inputs)).toEqual(bought);
    const { body } = await partner.sandbox.get('/v1/orders');
    expect(body.data).toHaveLength(1);
  });

  it('stops at an order that fails', async () => {
    const inputs = { packageId: 'pkg_test_out_of_stock', purchaseId: `arazzo-${randomUUID()}` };
    await expect(runWorkflow(inputs)).rejects.toThrow(/^waitForOrder: 200 .*"status":"failed"/);
  });
});
