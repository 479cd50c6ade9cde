import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import type { OpenAPIObject } from '@nestjs/swagger';
import type { Port } from '../../src/infra/http/openapi/document/operation.js';
import { ENV as CALLBACKS } from '../esim-sync/callback-calls.js';
import { openPortal } from '../harness/portal.js';
import { type RegisteredEndpoint, registerEndpoint } from '../webhooks/support.js';
import { createWorld, type World } from './fuzz/world.js';
import { type ReadOperation, readOperations } from './reader.js';

export type AnyPort = Port | 'callbacks';

export interface PlainAnswer {
  readonly status: number;
  readonly text: string;
}

export interface PlainCall {
  readonly method: string;
  /** Path and query, as sent. */
  readonly target: string;
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A running service and a client of each port with full access. */
export class EveryPort {
  private readonly agent = new Agent({ keepAlive: true });

  private constructor(
    readonly world: World,
    /** An endpoint of the partner of the portal session. */
    readonly endpoint: RegisteredEndpoint,
    private readonly urls: Readonly<Record<AnyPort, string>>,
    private readonly credentials: Readonly<Record<AnyPort, Readonly<Record<string, string>>>>,
  ) {}

  static async start(): Promise<EveryPort> {
    const world = await createWorld(CALLBACKS);
    const { api, admin, portal, callbacksUrl } = world.service.process;
    const [partnerId = ''] = world.realIds({ path: '/partners/{id}', port: 'admin' } as ReadOperation, 'id');
    const endpoint = await registerEndpoint(world.service, partnerId, {
      url: 'https://partner.example/hook',
    });
    const { cookie } = await openPortal(world.service.admin, portal!.url, partnerId);
    return new EveryPort(
      world,
      endpoint,
      { partner: api!.url, admin: admin!.url, portal: portal!.url, callbacks: callbacksUrl! },
      {
        partner: { authorization: `Bearer ${world.tokens.partner}` },
        admin: { authorization: `Bearer ${world.tokens.admin}` },
        portal: { cookie, 'sec-fetch-site': 'same-origin' },
        callbacks: {},
      },
    );
  }

  async stop(): Promise<void> {
    this.agent.destroy();
    await this.world.stop();
  }

  /** Fills a template such as `/v1/orders/{id}` with real ids where the world has some. */
  pathOf(port: Port, template: string): string {
    const operation = { path: template, port: port === 'portal' ? 'admin' : port } as ReadOperation;
    return template.replace(/\{(\w+)\}/g, (_, name: string) => {
      return this.world.realIds(operation, name)[0] ?? 'esim_00000000000000000000000000';
    });
  }

  /** Calls like a program, with a new Idempotency-Key. Uses `node:http`, because it costs this thread little. */
  call(port: AnyPort, { method, target, body, headers }: PlainCall): Promise<PlainAnswer> {
    const sent = {
      ...this.credentials[port],
      ...(method === 'POST' ? { 'idempotency-key': randomUUID() } : {}),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    };
    return new Promise((resolve, reject) => {
      request(this.urls[port] + target, { agent: this.agent, method, headers: sent }, (answer) => {
        let text = '';
        answer.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
        answer.once('end', () => resolve({ status: answer.statusCode!, text }));
      })
        .once('error', reject)
        .end(body);
    });
  }
}

export const DOCUMENTS = Object.fromEntries(
  (['partner', 'admin', 'portal'] as const).map((port) => [
    port,
    JSON.parse(readFileSync(`docs/openapi/${port}.json`, 'utf8')) as OpenAPIObject,
  ]),
) as Readonly<Record<Port, OpenAPIObject>>;

/** The operations of all three documents. */
export const OPERATIONS: readonly ReadOperation[] = Object.entries(DOCUMENTS).flatMap(([port, document]) =>
  readOperations(document, port as Port),
);
