import { readFileSync } from 'node:fs';
import type { OpenAPIObject } from '@nestjs/swagger';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Answer, RawClient } from '../infra/http-edge/raw-client.js';
import { size } from '../harness/size.js';
import { type Draft, targetOf, toBytes } from './fuzz/draft.js';
import { documentedRequest, fuzzedRequest, type Target, validRequest } from './fuzz/requests.js';
import { faultsOf } from './fuzz/verdict.js';
import { createWorld, type FuzzedPort, fuzzedPort, type World } from './fuzz/world.js';
import { type ReadOperation, readOperations } from './reader.js';
import { SchemaChecker } from './schemas.js';

/** `FUZZ_SEED=random` explores, and a number repeats a run. */
const SEED =
  process.env['FUZZ_SEED'] === 'random'
    ? Math.trunc(Math.random() * 2 ** 31)
    : Number(process.env['FUZZ_SEED'] ?? 20261121);
const RUNS = size('FUZZ_RUNS', 5, 8);
const REPEATS = 2;
/** Operations whose replay has null in place of the secret (D20). */
/** A value that a response shows once: a key, a signing secret, or the link with the code of a portal session. */
const SECRET = /"(key|secret|url(?=":"[^"]*#code=))":"[^"]+"/;

const documents: Readonly<Record<FuzzedPort, OpenAPIObject>> = {
  partner: readDocument('partner'),
  admin: readDocument('admin'),
};
const operations = [
  ...readOperations(documents.partner, 'partner'),
  ...readOperations(documents.admin, 'admin'),
];
const checkers = { partner: new SchemaChecker(documents.partner), admin: new SchemaChecker(documents.admin) };

let world: World;
let calls = 0;

beforeAll(async () => {
  console.log(`fuzz seed ${SEED}`);
  world = await createWorld();
});

afterAll(async () => {
  console.log(`fuzz calls ${calls}`);
  await world.stop();
});

// All documented requests come first, because fuzzing uses up the objects.
describe('the documented request', () => {
  it.each(operations.map((operation) => [operation.name, operation] as const))(
    '%s succeeds',
    async (_name, operation) => {
      const draft = documentedRequest(targetOn(operation));
      const success = operation.responses.find(({ status }) => status.startsWith('2'));
      await send(operation, { ...draft, expected: [Number(success?.status)] });
    },
  );
});

describe('a fuzzed request', () => {
  it.each(operations.map((operation) => [operation.name, operation] as const))(
    '%s responds as documented',
    async (_name, operation) => {
      const before = await world.countRows();
      await fc.assert(
        fc.asyncProperty(
          fuzzedRequest(targetOn(operation)),
          async (draft) => void (await send(operation, draft)),
        ),
        { seed: SEED, numRuns: RUNS },
      );
      if (operation.method === 'get') expect(await world.countRows()).toEqual(before);
    },
  );
});

describe('an unknown or foreign id', () => {
  const withIds = operations.filter(({ path }) => path.includes('{'));
  it.each(withIds.map((operation) => [operation.name, operation] as const))(
    '%s returns the same 404',
    async (_name, operation) => {
      const draft = documentedRequest(targetOn(operation));
      for (const parameter of Object.keys(draft.ids)) {
        for (const id of world.foreignIds(operation, parameter)) {
          await send(operation, { ...draft, ids: { ...draft.ids, [parameter]: id }, expected: [404] });
        }
      }
    },
  );
});

// Lookups of these names in plain objects always succeed (D9).
describe('a name that every object inherits', () => {
  const names = ['constructor', '__proto__', 'toString', 'valueOf', 'hasOwnProperty'];

  it.each(names)('%s is an unknown parameter', async (name) => {
    const answer = await world.service.admin.get(`/internal/v1/partners?${name}=1`);
    expect([answer.status, answer.body.code]).toEqual([400, 'validation_failed']);
  });

  it.each(names)('%s is an unknown field at every level', async (name) => {
    const api = world.service.partnerApi(world.tokens.partner);
    const money = `{"amount":100000,"currency":"USD","${name}":1}`;
    for (const more of [`"${name}":1`, `"${name}":{}`, `"max_unit_price":${money}`]) {
      const answer = await api.post('/v1/orders', `{"package_id":"pkg_fr_1gb_7d",${more}}`);
      expect(answer.status, more).toBe(400);
    }
  });

  it.each(names)('%s in the metadata is refused or stored, never lost', async (name) => {
    const api = world.service.partnerApi(world.tokens.partner);
    const answer = await api.post('/v1/orders', `{"package_id":"pkg_fr_1gb_7d","metadata":{"${name}":"x"}}`);
    if (answer.status !== 400) expect(answer.text).toContain(`"metadata":{"${name}":"x"}`);
  });
});

describe('the same key and request twice', () => {
  const posts = operations.filter(({ method }) => method === 'post');
  it.each(posts.map((operation) => [operation.name, operation] as const))(
    '%s returns the same bytes',
    async (_name, operation) => {
      await fc.assert(
        fc.asyncProperty(validRequest(targetOn(operation)), async (draft) => {
          const bytes = toBytes(operation, draft);
          const first = await send(operation, draft, bytes);
          const second = await send(operation, draft, bytes);
          const isFinal = first.status < 300 || [402, 409].includes(first.status);
          expect(second.headers['idempotent-replayed'], first.body).toBe(
            isFinal ? 'true' : second.headers['idempotent-replayed'],
          );
          if (second.headers['idempotent-replayed'] !== 'true') return;
          expect(second.status).toBe(first.status);
          expect(second.body).toBe(first.body.replace(SECRET, '"$1":null'));
          expect(second.headers['location']).toBe(first.headers['location']);
        }),
        { seed: SEED, numRuns: REPEATS },
      );
    },
  );
});

/** Sends a request and expects a documented response. */
async function send(
  operation: ReadOperation,
  draft: Draft,
  bytes = toBytes(operation, draft),
): Promise<Answer> {
  calls++;
  // The timeout ends a hanging call.
  const client = new RawClient(world.ports[fuzzedPort(operation)]).write(bytes);
  const answer = await client.answer().finally(() => client.destroy());
  const faults = faultsOf(operation, draft, answer, checkers[fuzzedPort(operation)]);
  if (faults.length > 0) {
    const what = `${draft.method} ${targetOf(operation, draft)} [${draft.mutations.join(', ')}]`;
    throw new Error(
      `${faults.join('; ')}\n${what}\n${bytes.toString('utf8').slice(0, 1_500)}\n-> ${answer.status} ${answer.body.slice(0, 600)}`,
    );
  }
  return answer;
}

function targetOn(operation: ReadOperation): Target {
  return { document: documents[fuzzedPort(operation)], operation, world };
}

function readDocument(port: FuzzedPort): OpenAPIObject {
  return JSON.parse(readFileSync(`docs/openapi/${port}.json`, 'utf8')) as OpenAPIObject;
}
