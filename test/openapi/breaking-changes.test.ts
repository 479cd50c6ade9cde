import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

type Node = Record<string, unknown>;
interface BreakingChanges {
  readonly breakingChanges: (before: Node, next: Node) => readonly string[];
}

const { breakingChanges } = (await import(
  new URL('../../scripts/api-changes/breaking-changes.mjs', import.meta.url).href
)) as BreakingChanges;

const released = (): Node => JSON.parse(readFileSync('docs/openapi/released/partner.json', 'utf8')) as Node;

/** A part of a document, by the names on the way to it. */
function part(document: Node, ...names: readonly string[]): Node {
  return names.reduce((node, name) => {
    if (!(name in node)) throw new Error(`no ${name} in ${names.join(' > ')}`);
    return node[name] as Node;
  }, document);
}

const schema = (document: Node, name: string): Node => part(document, 'components', 'schemas', name);
const field = (document: Node, name: string, of: string): Node =>
  part(schema(document, of), 'properties', name);
const listOf = (node: Node, name: string): unknown[] => node[name] as unknown[];

/** What is said of the released document with one change in it. */
function after(change: (document: Node) => void): readonly string[] {
  const document = released();
  change(document);
  return breakingChanges(released(), document);
}

const CHANGES: readonly (readonly [said: string, change: (document: Node) => void])[] = [
  ['GET /v1/me: the operation is gone', (d) => delete part(d, 'paths')['/v1/me']],
  ['it no longer answers 202', (d) => delete part(d, 'paths', '/v1/orders', 'post', 'responses')['202']],
  ['it no longer answers 402', (d) => delete part(d, 'paths', '/v1/orders', 'post', 'responses')['402']],
  [
    'it is never insufficient_balance any more',
    (d) => {
      const { content } = part(d, 'components', 'responses', 'InsufficientBalanceOnPost') as {
        content: Node;
      };
      delete part(content, 'application/problem+json', 'examples')['insufficient_balance'];
    },
  ],
  ['.retryable: it is gone', (d) => delete part(schema(d, 'Problem'), 'properties')['retryable']],
  ['the default was 1 and is 2', (d) => (field(d, 'quantity', 'PlaceOrderDto')['default'] = 2)],
  [
    'the header X-Service-Signature is gone',
    (d) => {
      const { post } = part(d, 'webhooks', 'order.issued') as { post: Node };
      post['parameters'] = listOf(post, 'parameters').filter(
        (each) => (each as { name: string }).name !== 'X-Service-Signature',
      );
    },
  ],
  ['is not among its alternatives any more', (d) => listOf(schema(d, 'EventResponse'), 'oneOf').splice(2, 1)],
  ['webhook order.issued: the event is gone', (d) => delete part(d, 'webhooks')['order.issued']],
  ['.package_id: it is gone', (d) => delete part(schema(d, 'OrderResponse'), 'properties')['package_id']],
  [
    '.status: it may be missing now',
    (d) => {
      const order = schema(d, 'OrderResponse');
      order['required'] = listOf(order, 'required').filter((name) => name !== 'status');
    },
  ],
  ['.quantity: it may be string now', (d) => (field(d, 'quantity', 'OrderResponse')['type'] = 'string')],
  ['.iccid: it is gone', (d) => delete part(schema(d, 'OrderEsimResponse'), 'properties')['iccid']],
  ['.reference: it is required now', (d) => listOf(schema(d, 'PlaceOrderDto'), 'required').push('reference')],
  ['.reference: it is gone', (d) => delete part(schema(d, 'PlaceOrderDto'), 'properties')['reference']],
  ['.quantity: maximum was', (d) => (field(d, 'quantity', 'PlaceOrderDto')['maximum'] = 1)],
  [
    String.raw`.package_id: pattern was ^[^\u0000]+$ and is ^x`,
    (d) => (field(d, 'package_id', 'PlaceOrderDto')['pattern'] = '^x'),
  ],
  [
    'query parameter region is required now',
    (d) =>
      listOf(part(d, 'paths', '/v1/orders', 'get'), 'parameters').push({
        in: 'query',
        name: 'region',
        required: true,
      }),
  ],
  [
    'is gone, and an unknown one is refused',
    (d) => listOf(part(d, 'paths', '/v1/orders', 'get'), 'parameters').splice(0, 1),
  ],
];

describe('what breaks a program that was written for v1', () => {
  it.each(CHANGES)('%s', (said, change) => {
    expect(after(change).join('\n')).toContain(said);
  });

  it('is no other way to write the same', () => {
    const same = after((d) => {
      const quantity = field(d, 'quantity', 'PlaceOrderDto');
      Object.assign(quantity, { format: 'int64', 'x-default': quantity['default'] });
      delete quantity['default'];
      field(d, 'package_id', 'PlaceOrderDto')['pattern'] = String.raw`^[^\x00]+$`;
      const schemas = part(d, 'components', 'schemas');
      schemas['Failure'] = schemas['FailureResponse'];
      field(d, 'failure', 'OrderResponse')['anyOf'] = [
        { $ref: '#/components/schemas/Failure' },
        { type: 'null' },
      ];
    });
    expect(same).toEqual([]);
  });

  it('is nothing of what the guide lets change', () => {
    expect(after(() => undefined)).toEqual([]);
    const allowed = after((d) => {
      part(schema(d, 'OrderResponse'), 'properties')['carbon'] = { type: 'string' };
      listOf(field(d, 'status', 'OrderResponse'), 'enum').push('shipped');
      part(schema(d, 'PlaceOrderDto'), 'properties')['note'] = { type: 'string' };
      listOf(part(d, 'paths', '/v1/orders', 'get'), 'parameters').push({ in: 'query', name: 'region' });
      part(d, 'paths')['/v1/shops'] = { get: { responses: { 200: { description: 'New.' } } } };
      listOf(schema(d, 'EventResponse'), 'oneOf').push({ $ref: '#/components/schemas/OrderIssuedEvent' });
      delete part(d, 'paths', '/v1/orders', 'post', 'responses')['503'];
      part(d, 'paths')['/v1/orders/{order}'] = part(d, 'paths', '/v1/orders/{id}');
      delete part(d, 'paths')['/v1/orders/{id}'];
    });
    expect(allowed).toEqual([]);
  });
});
