import { RequestMethod } from '@nestjs/common';
import { DiscoveryService } from '@nestjs/core';
import type { SchemaObject } from '@nestjs/swagger';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import type { RunningHttpApp } from '../../src/apps/http-app.js';
import { routeHandlers } from '../../src/infra/http/index.js';
import type { Port } from '../../src/infra/http/openapi/document/operation.js';
import { signWebhook } from '../../src/webhooks/signature.js';
import { PATH as CALLBACK_PATH } from '../esim-sync/callback-calls.js';
import { leastOf } from '../harness/index.js';
import { type AnyPort, DOCUMENTS, EveryPort, OPERATIONS } from './every-port.js';
import { follow, type ReadOperation } from './reader.js';
import { worstBodies, worstLongTexts, worstTexts, worstValues } from './worst-inputs.js';

/** Limit for the time that a call may block the event loop, and so for the CPU time of the loop's thread. */
const LOOP_MS = 20;
const HEADER_CHARACTERS = 15_000;

interface Route {
  readonly port: AnyPort;
  readonly method: string;
  /** The path with real ids. */
  readonly path: string;
  readonly operation: ReadOperation | null;
}

interface Call {
  readonly name: string;
  readonly target?: string;
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

let ports: EveryPort;
const routes: Route[] = [];

beforeAll(async () => {
  ports = await EveryPort.start();
  const { api, admin, portal } = ports.world.service.process;
  routes.push(...routesOf('portal', portal!), ...routesOf('partner', api!), ...routesOf('admin', admin!));
  routes.push({ port: 'callbacks', method: 'POST', path: CALLBACK_PATH, operation: null });
});
afterAll(() => ports.stop());

// Otherwise later calls would have been refused before any processing.
afterEach(async () => {
  expect((await ports.call('portal', { method: 'GET', target: '/portal/v1/session' })).status).toBe(200);
});

/** Routes of the running app, documented or not. */
function routesOf(port: Port, { nest }: RunningHttpApp): Route[] {
  return routeHandlers(nest.get(DiscoveryService, { strict: false })).map((route) => {
    const method = RequestMethod[route.method];
    const template = route.path.replace(/:(\w+)/g, '{$1}');
    const isSame = (each: ReadOperation): boolean =>
      each.port === port && each.path === template && each.method.toUpperCase() === method;
    return { port, method, path: ports.pathOf(port, template), operation: OPERATIONS.find(isSame) ?? null };
  });
}

/** CPU time of the call in this thread, which also runs the service. It is an upper bound of the blocked time. */
async function cpuMs(
  { port, method, path }: Route,
  { name, target = path, body, headers }: Call,
): Promise<number> {
  const before = process.threadCpuUsage();
  const { status } = await ports.call(port, {
    method,
    target,
    ...(body === undefined ? {} : { body }),
    ...(headers === undefined ? {} : { headers }),
  });
  const { user, system } = process.threadCpuUsage(before);
  expect([status >= 500, method, path, name]).toEqual([false, method, path, name]);
  return (user + system) / 1_000;
}

/** Repeats each call until it is fast enough once, and returns those that never are. */
async function tooDear(calls: readonly (readonly [Route, Call])[]): Promise<string[]> {
  const dear: string[] = [];
  for (const [route, call] of calls) {
    const least = await leastOf(LOOP_MS, () => cpuMs(route, call));
    if (least >= LOOP_MS)
      dear.push(`${route.port} ${route.method} ${route.path}: ${call.name}: ${least.toFixed(0)} ms`);
  }
  return dear;
}

const isWrite = ({ method }: Route): boolean => method !== 'GET' && method !== 'DELETE';

it('blocks others for at most 20 ms, whatever JSON a write sends', async () => {
  // The edge and the check for unknown names are the same for all routes of a port. The next test covers every field.
  const writes = distinct(routes.filter(isWrite), ({ port }) => port);
  expect(writes).toHaveLength(4);
  const calls = writes.flatMap((route) =>
    worstBodies().map(([name, body]) => [route, { name, body }] as const),
  );
  expect(await tooDear(calls)).toEqual([]);
});

it('blocks others for at most 20 ms, whatever value a field has', async () => {
  const calls = distinct(routes.filter(isWrite).flatMap(fieldsOf), ({ rules }) => rules).flatMap(
    ({ route, name: field, valid, takesLongText }) =>
      [...worstValues(), ...(takesLongText ? worstLongTexts() : [])].map(([name, json]) => {
        const others = Object.entries(valid).filter(([each]) => each !== field);
        const members = others.map(([each, value]) => `${JSON.stringify(each)}:${JSON.stringify(value)},`);
        const body = `{${members.join('')}${JSON.stringify(field)}:${json}}`;
        return [route, { name: `${field}: ${name}`, body }] as const;
      }),
  );
  expect(await tooDear(calls)).toEqual([]);
});

/** One of each group with the same rules, because each field and parameter needs only one route. */
function distinct<T>(all: readonly T[], rulesOf: (each: T) => string): T[] {
  return [...new Map(all.toReversed().map((each) => [rulesOf(each), each])).values()].toReversed();
}

interface Field {
  readonly route: Route;
  readonly name: string;
  readonly rules: string;
  readonly takesLongText: boolean;
  /** A valid body. */
  readonly valid: Readonly<Record<string, unknown>>;
}

function fieldsOf(route: Route): Field[] {
  const { port, operation } = route;
  const content = Object.values(operation?.body?.content ?? {})[0];
  if (!content?.schema || port === 'callbacks') return [];
  const { properties = {} } = follow<SchemaObject>(DOCUMENTS[port], content.schema);
  const valid = {
    ...(content.example as object | undefined),
    ...('endpoint_id' in properties ? { endpoint_id: ports.endpoint.id } : {}),
  };
  return Object.entries(properties).map(([name, schema]) => ({
    route,
    name,
    rules: JSON.stringify([name, schema]),
    takesLongText: 'type' in schema && schema.type === 'string' && (schema.maxLength ?? 0) > 1_024,
    valid,
  }));
}

it('blocks others for at most 20 ms while the signature doctor explains a correctly signed body', async () => {
  const doctor = routes.find(({ path }) => path === '/portal/v1/signature-doctor')!;
  const timestampSeconds = Math.floor(Date.now() / 1_000);
  const calls = [...worstValues(), ...worstLongTexts()]
    .filter(([, json]) => json.startsWith('"'))
    .map(([name, json]) => {
      const body = JSON.parse(json) as string;
      const header = signWebhook({ timestampSeconds, body, secrets: [ports.endpoint.secret] });
      const received = { endpoint_id: ports.endpoint.id, headers: { 'X-Service-Signature': header }, body };
      return [doctor, { name, body: JSON.stringify({ ...received, computed: 'f'.repeat(64) }) }] as const;
    });
  expect(calls.length).toBeGreaterThan(20);
  expect(await tooDear(calls)).toEqual([]);
});

it('blocks others for at most 20 ms, whatever a query, a path or a header contains', async () => {
  const reads = routes.filter(({ method }) => method === 'GET');
  const parameters = distinct(reads.flatMap(parametersOf), ({ rules }) => rules);
  const calls = [
    ...parameters.flatMap(({ route, name: parameter }) =>
      worstTexts(1_200).map(([name, text]) => {
        const target = `${route.path}?${parameter}=${encodeURIComponent(text).slice(0, 3_600)}`;
        return [route, { name: `${parameter}: ${name}`, target }] as const;
      }),
    ),
    ...reads.flatMap((route) => targetsOf(route).map((call) => [route, call] as const)),
    ...distinct(reads, ({ port }) => port).flatMap((route) =>
      headersOf().map((call) => [route, call] as const),
    ),
  ];
  expect(await tooDear(calls)).toEqual([]);
});

function parametersOf(route: Route): { route: Route; name: string; rules: string }[] {
  return (route.operation?.parameters ?? [])
    .filter((parameter) => parameter.in === 'query')
    .map(({ name, schema }) => ({ route, name, rules: JSON.stringify([name, schema]) }));
}

function targetsOf({ path }: Route): Call[] {
  const parent = path.slice(0, path.lastIndexOf('/'));
  const names = Array.from({ length: 600 }, (_, nth) => `p${nth}=`);
  return [
    { name: '600 parameters', target: `${path}?${names.join('&')}` },
    { name: 'one parameter 1,300 times', target: `${path}?${'a=&'.repeat(1_300)}` },
    { name: 'a cursor of 8,000', target: `${path}?cursor=${'a'.repeat(8_000)}` },
    { name: 'a segment of 3,900', target: `${parent}/${'a'.repeat(3_900)}` },
    { name: '1,900 segments', target: `${path}${'/a'.repeat(1_900)}` },
  ];
}

function headersOf(): Call[] {
  const names = ['cookie', 'if-none-match', 'prefer', 'traceparent', 'x-forwarded-for', 'authorization'];
  return names.flatMap((header) =>
    ['a=b; ', '"a", ', 'wait=1, ', ' ,', ';'].map((unit) => ({
      name: `${header}: ${unit}`,
      headers: { [header]: `${unit.repeat(Math.floor(HEADER_CHARACTERS / unit.length))}x` },
    })),
  );
}
