import { randomBytes } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import { Controller, Get } from '@nestjs/common';
import { APP_GUARD, Reflector } from '@nestjs/core';
import { ExecutionContextHost } from '@nestjs/core/helpers/execution-context-host.js';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { Test } from '@nestjs/testing';
import { Throttle, ThrottlerModule, ThrottlerStorageService } from '@nestjs/throttler';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ApiKeyAuthRepository } from '../../src/auth/api-key-auth.repository.js';
import { GcraThrottlerStorage, toThrottlerLimit } from '../../src/auth/index.js';
import { AdminRateLimitGuard } from '../../src/auth/rate-limit.guard.js';
import { ProblemFilter } from '../../src/infra/http/edge/index.js';
import { expectProblem } from '../harness/expect-problem.js';
import { ADMIN_TOKEN, HttpClient, startTestService, type TestService } from '../harness/index.js';

const BURST = 5;
const otherToken = randomBytes(24).toString('hex');
const RATE_HEADERS = ['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset'];

let service: TestService;
let other: HttpClient;

beforeAll(async () => {
  service = await startTestService({
    env: {
      ADMIN_TOKENS: `portal:${ADMIN_TOKEN},jobs:${otherToken}`,
      // One token a minute, so that none is refilled during this test.
      ADMIN_RATE_LIMIT_PER_MINUTE: '1',
      ADMIN_RATE_LIMIT_BURST: String(BURST),
    },
  });
  other = new HttpClient(service.process.admin!.url, otherToken);
});

afterAll(() => service.stop());

describe("the admin port's rate limit (D21)", () => {
  it('has one bucket for all token names, and only its 429 has the rate headers', async () => {
    for (let i = 0; i < BURST; i++) {
      const passed = await service.admin.get('/internal/v1/partners');
      expect(passed.status).toBe(200);
      for (const name of RATE_HEADERS)
        expect(passed.headers.get(name), 'answers stay as they were').toBeNull();
    }
    const refused = await service.admin.get('/internal/v1/audit-log');
    expectProblem(refused, 429, 'rate_limited');
    expect(RATE_HEADERS.map((name) => Number(refused.headers.get(name)))).toEqual([
      BURST,
      0,
      expect.any(Number),
    ]);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    expect((await service.admin.post('/internal/v1/partners', { name: 'Late' })).status).toBe(429);
    expect((await other.get('/internal/v1/partners')).body.data, 'nothing was made').toEqual([]);
  });

  it('does not apply to the ops paths, the partner port or a wrong token', async () => {
    const { url } = service.process.admin!;
    for (let i = 0; i < BURST + 1; i++) expect((await fetch(`${url}/livez`)).status).toBe(200);
    expect((await new HttpClient(url, 'x'.repeat(40)).get('/internal/v1/partners')).status).toBe(401);
    expect((await service.partnerApi(null).get('/v1/me')).status).toBe(401);
  });
});

@Controller()
class ThrottledController {
  @Throttle({ default: { limit: 2, ttl: 3_600_000 } })
  @Get('throttled')
  throttled(): string {
    return 'done';
  }

  @Get('plain')
  plain(): string {
    return 'done';
  }
}

describe('a bug in the rate limit', () => {
  it('fails the call instead of allowing it without a limit', async () => {
    const guard = new AdminRateLimitGuard(
      { throttlers: [toThrottlerLimit({ perMinute: 1, burst: 1 })] },
      new ThrottlerStorageService(),
      new Reflector(),
    );
    await guard.onModuleInit();
    const request = { authResult: { keyId: 'a' }, headers: {} };
    const handler = Reflect.get(ThrottledController.prototype, 'plain');
    const context = new ExecutionContextHost([request, {}], ThrottledController, handler);
    await expect(guard.canActivate(context)).rejects.toThrow('the throttler has no buckets');
  });
});

describe('a route with its own @Throttle', () => {
  it('has its own bucket per caller, in addition to the bucket of the port', async () => {
    const storage = new GcraThrottlerStorage(new ApiKeyAuthRepository(service.database.pool));
    const module = await Test.createTestingModule({
      imports: [
        ThrottlerModule.forRoot({ throttlers: [toThrottlerLimit({ perMinute: 1, burst: 100 })], storage }),
      ],
      controllers: [ThrottledController],
      providers: [{ provide: APP_GUARD, useClass: AdminRateLimitGuard }],
    }).compile();
    const adapter = new FastifyAdapter();
    // The edge's information about the caller.
    adapter.getInstance().addHook('onRequest', (request, _reply, done) => {
      const keyId = String(request.headers['x-caller']);
      request.authResult = {
        principal: null,
        headers: {},
        refusal: null,
        keyId,
        partnerId: null,
        mode: null,
      };
      done();
    });
    const app = module.createNestApplication<NestFastifyApplication>(adapter, { logger: false });
    app.useGlobalFilters(new ProblemFilter(() => undefined));
    await app.listen(0, '127.0.0.1');
    try {
      const { port } = app.getHttpServer().address() as AddressInfo;
      const status = async (path: string, caller: string): Promise<number> =>
        (await fetch(`http://127.0.0.1:${port}/${path}`, { headers: { 'x-caller': caller } })).status;
      expect(await status('throttled', 'a')).toBe(200);
      expect(await status('throttled', 'a')).toBe(200);
      expect(await status('throttled', 'a')).toBe(429);
      expect(await status('throttled', 'b')).toBe(200);
      expect(await status('plain', 'a')).toBe(200);
    } finally {
      await app.close();
    }
  });
});
