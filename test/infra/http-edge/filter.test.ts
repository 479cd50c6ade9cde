import { setTimeout as sleep } from 'node:timers/promises';
import {
  BadRequestException,
  ConflictException,
  ForbiddenException,
  ImATeapotException,
  InternalServerErrorException,
  NotFoundException,
  ServiceUnavailableException,
  UnauthorizedException,
  UnprocessableEntityException,
} from '@nestjs/common';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { AppError, ValidationFailed, type ErrorCode } from '../../../src/common/errors/index.js';
import { startEdgeApp, type EdgeApp } from './edge-app.js';
import { expectOneProblem } from './expect-problem.js';
import { exchange, RawClient, request, until } from './raw-client.js';

let edge: EdgeApp;
beforeAll(async () => {
  edge = await startEdgeApp();
});
afterAll(() => edge.close());
beforeEach(() => {
  edge.records.length = 0;
  edge.unexpected.length = 0;
});

const throwing = (error: unknown): void => {
  edge.behavior.thing = () => {
    throw error;
  };
};
const coded = (code: string, message = 'secret detail'): Error => Object.assign(new Error(message), { code });
const fastifyError = (statusCode: number): Error =>
  Object.assign(new Error('secret detail'), { name: 'FastifyError', code: 'FST_ERR_X', statusCode });

describe('an error in a handler', () => {
  const foreseen: readonly [string, unknown, number, ErrorCode][] = [
    ['an AppError', new AppError('price_changed'), 409, 'price_changed'],
    ['BadRequestException', new BadRequestException('secret detail'), 400, 'bad_request'],
    ['UnauthorizedException', new UnauthorizedException('secret detail'), 401, 'unauthorized'],
    ['ForbiddenException', new ForbiddenException('secret detail'), 403, 'forbidden'],
    ['NotFoundException', new NotFoundException('secret detail'), 404, 'not_found'],
    ['ConflictException', new ConflictException('secret detail'), 409, 'conflict'],
    ['an exception of a status without a code', new ImATeapotException('secret detail'), 400, 'bad_request'],
    ['UnprocessableEntityException', new UnprocessableEntityException('secret detail'), 400, 'bad_request'],
    ['ServiceUnavailableException', new ServiceUnavailableException(), 503, 'service_unavailable'],
    ['a FastifyError of 413', fastifyError(413), 413, 'payload_too_large'],
    ['a FastifyError of 415', fastifyError(415), 415, 'unsupported_media_type'],
    ['a FastifyError of 400', fastifyError(400), 400, 'bad_request'],
    ['too many connections', coded('53300'), 503, 'service_unavailable'],
    ['a stopping server', coded('57P01'), 503, 'service_unavailable'],
    ['a starting server', coded('57P03'), 503, 'service_unavailable'],
    ['a lost connection', coded('08006'), 503, 'service_unavailable'],
    ['a server that is away', coded('ECONNREFUSED'), 503, 'service_unavailable'],
    ['a reset connection to it', coded('ECONNRESET', 'read ECONNRESET'), 503, 'service_unavailable'],
    ['a full pool', new Error('timeout exceeded when trying to connect'), 503, 'service_unavailable'],
    ['a cut query', new Error('Connection terminated unexpectedly'), 503, 'service_unavailable'],
  ];
  it.each(foreseen)('returns its code, and is not reported: %s', async (_name, error, status, code) => {
    throwing(error);
    const answer = await exchange(edge.port, request());
    await expectOneProblem(edge, answer, status, code);
    expect(answer.body).not.toContain('secret');
    expect(answer.headers['retry-after']).toBe(status === 503 ? '1' : undefined);
    expect(answer.headers['x-ratelimit-remaining']).toBe('7');
    expect(edge.unexpected).toEqual([]);
  });

  const unforeseen: readonly [string, unknown][] = [
    ['an Error', new Error('secret detail')],
    ['a TypeError', new TypeError('secret detail')],
    ['a broken query', coded('42P01')],
    ['a code that only begins like one', coded('08')],
    ['a thrown text', 'secret detail'],
    ['a thrown null', null],
    ['a thrown undefined', undefined],
    ['InternalServerErrorException', new InternalServerErrorException('secret detail')],
    ['a FastifyError of 500', fastifyError(500)],
    [
      'an Error that claims a status',
      Object.assign(new Error('secret detail'), { statusCode: 404, status: 404 }),
    ],
  ];
  it.each(unforeseen)('returns a 500 without its message, and is reported: %s', async (_name, error) => {
    throwing(error);
    const answer = await exchange(edge.port, request());
    await expectOneProblem(edge, answer, 500, 'internal_error');
    expect(answer.body).not.toContain('secret');
    expect(edge.unexpected).toEqual([error]);
  });

  it('returns its headers and fields', async () => {
    throwing(new AppError('idempotency_in_progress', { headers: { 'Retry-After': '2' } }));
    expect((await exchange(edge.port, request())).headers['retry-after']).toBe('2');
    throwing(new ValidationFailed([{ pointer: '/a', code: 'missing', message: 'is required' }]));
    const answer = await exchange(edge.port, request());
    expect(answer.problem.errors).toEqual([{ pointer: '/a', code: 'missing', message: 'is required' }]);
  });

  it('has its own request id even if a replay had set another', async () => {
    edge.behavior.thing = (_request, reply) => {
      reply.header('x-request-id', 'req_FIRST');
      throw new AppError('conflict');
    };
    await expectOneProblem(edge, await exchange(edge.port, request()), 409, 'conflict');
  });

  it('is reported after the response was sent, and changes nothing', async () => {
    const late = new Error('late');
    edge.behavior.thing = (_request, reply) => {
      reply.send('{"sent":true}');
      throw late;
    };
    const client = new RawClient(edge.port).write(request());
    expect((await client.answer()).body).toBe('{"sent":true}');
    await sleep(30);
    expect(client.text.match(/HTTP\/1\.1/g)).toHaveLength(1);
    expect(edge.unexpected).toEqual([late]);
    expect(edge.records).toMatchObject([{ status: 200 }]);
    client.destroy();
  });

  it('cuts off a response in progress, and is recorded as a 500', async () => {
    edge.behavior.thing = async (_request, reply) => {
      reply.raw.writeHead(200, { 'content-length': '1000' });
      reply.raw.write('half');
      await sleep(20);
      throw new Error('broken');
    };
    const client = new RawClient(edge.port).write(request());
    await client.closed();
    expect(client.text.endsWith('half')).toBe(true);
    await until(() => edge.records.length === 1);
    expect(edge.records).toMatchObject([{ status: 500, errorCode: 'internal_error' }]);
    expect(edge.unexpected).toHaveLength(1);
  });
});

describe('a 304', () => {
  it('has no body, and has the id and the headers of the gate', async () => {
    edge.behavior.thing = (_request, reply) => void reply.code(304).header('etag', '"1"');
    const client = new RawClient(edge.port).write(Buffer.concat([request(), request()]));
    const answers = await client.answers(2);
    for (const answer of answers) {
      expect(answer).toMatchObject({ status: 304, body: '' });
      expect(answer.headers).toMatchObject({ etag: '"1"', 'x-ratelimit-remaining': '7' });
      expect(answer.headers['x-request-id']).toMatch(/^req_/);
    }
    client.destroy();
  });
});
