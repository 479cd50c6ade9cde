import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { RequestMethod } from '@nestjs/common';
import { DiscoveryService } from '@nestjs/core';
import type { OpenAPIObject, SchemaObject } from '@nestjs/swagger';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { RunningHttpApp } from '../../src/apps/http-app.js';
import { routeHandlers } from '../../src/infra/http/index.js';
import { signWebhook } from '../../src/webhooks/signature.js';
import type { Port } from '../../src/infra/http/openapi/document/operation.js';
import { ENV as CALLBACKS, PATH as CALLBACK_PATH } from '../esim-sync/callback-calls.js';
import { leastOf } from '../harness/index.js';
import { openPortal } from '../harness/portal.js';
import { type RegisteredEndpoint, registerEndpoint } from '../webhooks/support.js';
import { createWorld, type World } from './fuzz/world.js';
import { follow, type ReadOperation, readOperations } from './reader.js';
import { worstBodies, worstLongTexts, worstTexts, worstValues } from './worst-inputs.js';

/** No call may keep the event loop from others for longer, so none may cost the loop's thread more. */
const LOOP_MS = 20;
const HEADER_CHARACTERS = 15_000;

interface Route {
  readonly port: Port | 'callbacks';
  readonly method: string;
  /** With real ids. */
  readonly path: string;
  readonly operation: ReadOperation | null;
}

interface Call {
  readonly name: string;
  readonly target?: string;
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

const documents = Object.fromEntries(
  (['partner', 'admin', 'portal'] as const).map((port) => [
    port,
    JSON.parse(readFileSync(`docs/openapi/${port}.json`, 'utf8')) as OpenAPIObject,
  ]),
) as Record<Port, OpenAPIObject>;

let world: World;
let urls: Record<Route['port'], string>;
let credentials: Record<Route['port'], Record<string, string>>;
let endpoint: RegisteredEndpoint;
const routes: Route[] = [];
const agent = new Agent({ keepAlive: true });

beforeAll(async () => {
  world = await createWorld(CALLBACKS);
  const { api, admin, portal, callbacksUrl } = world.service.process;
  urls = { partner: api!.url, admin: admin!.url, portal: portal!.url, callbacks: callbacksUrl! };
  const victim = realId('/internal/v1/partners/{id}', 'admin');
  endpoint = await registerEndpoint(world.service, victim, { url: 'https://partner.example/hook' });
  const { cookie } = await openPortal(world.service.admin, urls.portal, victim);
  credentials = {
    partner: { authorization: `Bearer ${world.tokens.partner}` },
    admin: { authorization: `Bearer ${world.tokens.admin}` },
    portal: { cookie, 'sec-fetch-site': 'same-origin' },
    callbacks: {},
  };
  routes.push(...routesOf('portal', portal!), ...routesOf('partner', api!), ...routesOf('admin', admin!));
  routes.push({ port: 'callbacks', method: 'POST', path: CALLBACK_PATH, operation: null });
});
afterAll(async () => {
  agent.destroy();
  await world.stop();
});

function routesOf(port: Port, { nest }: RunningHttpApp): Route[] {
  const operations = readOperations(documents[port], port);
  return routeHandlers(nest.get(DiscoveryService, { strict: false })).map(({ method, path }) => {
    const template = path.replace(/:(\w+)/g, '{$1}');
    return {
      port,
      method: RequestMethod[method],
      path: template
        .split('/')
        .map((segment) => (segment.startsWith('{') ? realId(template, port, segment) : segment))
        .join('/'),
      operation:
        operations.find(
          (each) => each.path === template && each.method.toUpperCase() === RequestMethod[method],
        ) ?? null,
    };
  });
}

/** An id of what the path names; one of nobody where the world has none. */
function realId(path: string, port: Port, segment = '{id}'): string {
  const operation = { path, port: port === 'portal' ? 'admin' : port } as ReadOperation;
  return world.realIds(operation, segment.slice(1, -1))[0] ?? 'esim_00000000000000000000000000';
}

/** What the call costs this thread, in which the service runs: more than the event loop stood still for it. */
async function cpuMs({ port, method, path }: Route, { target = path, body, headers }: Call): Promise<number> {
  const before = process.threadCpuUsage();
  await new Promise<void>((resolve, reject) => {
    const call = request(
      urls[port] + target,
      {
        agent,
        method,
        headers: {
          ...credentials[port],
          ...(method === 'POST' ? { 'idempotency-key': randomUUID() } : {}),
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
      },
      (answer) => {
        if (answer.statusCode! >= 500) reject(new Error(`${answer.statusCode}: ${method} ${path}`));
        answer.resume().once('end', resolve);
      },
    );
    call.once('error', reject).end(body);
  });
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1_000;
}

/** Makes each call until it has once cost little enough. Returns those that never do. */
async function tooDear(calls: readonly (readonly [Route, Call])[]): Promise<string[]> {
  const dear: string[] = [];
  for (const [route, call] of calls) {
    const least = await leastOf(LOOP_MS, () => cpuMs(route, call), 10);
    if (least >= LOOP_MS)
      dear.push(`${route.port} ${route.method} ${route.path}: ${call.name}: ${least.toFixed(0)} ms`);
  }
  return dear;
}

const isWrite = ({ method }: Route): boolean => method !== 'GET' && method !== 'DELETE';

it('serves others within 20 ms, whatever JSON a write sends', async () => {
  const writes = routes.filter(isWrite);
  expect(new Set(writes.map(({ port }) => port)).size).toBe(4);
  const calls = writes.flatMap((route) =>
    worstBodies().map(([name, body]) => [route, { name, body }] as const),
  );
  expect(await tooDear(calls)).toEqual([]);
});

it('serves others within 20 ms, whatever value a field has', async () => {
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

/** The first of those that share their rules: each field and each parameter needs to be tried at one route only. */
function distinct<T>(all: readonly T[], rulesOf: (each: T) => string): T[] {
  return [...new Map(all.toReversed().map((each) => [rulesOf(each), each])).values()].toReversed();
}

interface Field {
  readonly route: Route;
  readonly name: string;
  readonly rules: string;
  readonly takesLongText: boolean;
  /** A body that is valid. */
  readonly valid: Readonly<Record<string, unknown>>;
}

function fieldsOf(route: Route): Field[] {
  const { port, operation } = route;
  const content = Object.values(operation?.body?.content ?? {})[0];
  if (!content?.schema || port === 'callbacks') return [];
  const { properties = {} } = follow<SchemaObject>(documents[port], content.schema);
  const valid = {
    ...(content.example as object | undefined),
    ...('endpoint_id' in properties ? { endpoint_id: endpoint.id } : {}),
  };
  return Object.entries(properties).map(([name, schema]) => ({
    route,
    name,
    rules: JSON.stringify([name, schema]),
    takesLongText: 'type' in schema && schema.type === 'string' && (schema.maxLength ?? 0) > 1_024,
    valid,
  }));
}

it('serves others within 20 ms while the signature doctor explains a body that is signed rightly', async () => {
  const doctor = routes.find(({ path }) => path === '/portal/v1/signature-doctor')!;
  const timestampSeconds = Math.floor(Date.now() / 1_000);
  const calls = [...worstValues(), ...worstLongTexts()]
    .filter(([, json]) => json.startsWith('"'))
    .map(([name, json]) => {
      const body = JSON.parse(json) as string;
      const header = signWebhook({ timestampSeconds, body, secrets: [endpoint.secret] });
      const received = { endpoint_id: endpoint.id, headers: { 'X-Service-Signature': header }, body };
      return [doctor, { name, body: JSON.stringify({ ...received, computed: 'f'.repeat(64) }) }] as const;
    });
  expect(calls.length).toBeGreaterThan(20);
  expect(await tooDear(calls)).toEqual([]);
});

it('serves others within 20 ms, whatever a query, a path or a header has', async () => {
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
