import type { AddressInfo } from 'node:net';
import {
  Body,
  Controller,
  Get,
  HttpCode,
  Inject,
  Module,
  Param,
  Post,
  Query,
  Req,
  Res,
} from '@nestjs/common';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { Test } from '@nestjs/testing';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { AppError, NotFound } from '../../../src/common/errors/index.js';
import {
  createEdgeAdapter,
  ProblemFilter,
  type AuthResult,
  type EdgeCall,
  type EdgeOptions,
  type FinishedCall,
} from '../../../src/infra/http/edge/index.js';

/** Defines what the handler of `GET /v1/things` does next. */
export class Behavior {
  thing: (request: FastifyRequest, reply: FastifyReply) => unknown = Behavior.plain;

  static readonly plain = (): unknown => ({ name: 'thing' });
}

@Controller('v1')
class ThingsController {
  constructor(@Inject(Behavior) private readonly behavior: Behavior) {}

  @Get('things')
  list(@Req() request: FastifyRequest, @Res({ passthrough: true }) reply: FastifyReply): unknown {
    return this.behavior.thing(request, reply);
  }

  @Get('things/:id')
  one(@Param('id') id: string): unknown {
    if (!id.startsWith('t')) throw new NotFound();
    return { id };
  }

  @Get('query')
  query(@Query() query: Record<string, unknown>): unknown {
    return { query };
  }

  @Post('things')
  @HttpCode(201)
  create(@Body() body: unknown): unknown {
    return { received: body ?? null };
  }

  @Post('things/:id/close')
  close(@Param('id') id: string): unknown {
    return { id };
  }
}

@Controller()
class ProbeController {
  @Get('livez')
  live(): unknown {
    return { status: 'ok' };
  }
}

@Module({ controllers: [ThingsController, ProbeController], providers: [Behavior] })
class SmallApp {}

export const AUTHENTICATED: AuthResult = {
  principal: { partnerId: 'ptn_1' },
  headers: { 'x-ratelimit-limit': '120', 'x-ratelimit-remaining': '7' },
  refusal: null,
  keyId: 'key_1',
  partnerId: 'ptn_1',
  mode: 'live',
};

export function refused(error: AppError): AuthResult {
  return { principal: null, headers: {}, refusal: error, keyId: null, partnerId: null, mode: null };
}

function takeGoodToken(call: EdgeCall): Promise<AuthResult> {
  const lines = call.rawHeaders.filter((name, i) => i % 2 === 0 && name.toLowerCase() === 'authorization');
  const isGood = lines.length === 1 && call.headers.authorization === 'Bearer good';
  if (isGood) return Promise.resolve(AUTHENTICATED);
  return Promise.resolve(
    refused(new AppError('unauthorized', { headers: { 'www-authenticate': 'Bearer' } })),
  );
}

export interface EdgeApp {
  readonly app: NestFastifyApplication;
  readonly port: number;
  readonly records: FinishedCall[];
  readonly unexpected: unknown[];
  readonly seen: EdgeCall[];
  /** Tests may change it. It is stored per app, because test files in one process share module state. */
  readonly behavior: Behavior;
  close(): Promise<void>;
}

export async function startEdgeApp(
  options: Partial<EdgeOptions> & { authenticate?: (call: EdgeCall) => Promise<AuthResult> } = {},
): Promise<EdgeApp> {
  const records: FinishedCall[] = [];
  const unexpected: unknown[] = [];
  const seen: EdgeCall[] = [];
  const authenticate = options.authenticate ?? takeGoodToken;
  const onUnexpectedError = (error: unknown): void => void unexpected.push(error);
  const adapter = createEdgeAdapter({
    services: () => ({
      authenticator: { authenticate: (call) => (seen.push(call), authenticate(call)) },
      recorder: { record: (call) => void records.push(call) },
    }),
    trustProxyHops: 0,
    idempotencyKeyRequired: true,
    onUnexpectedError,
    ...options,
  });
  const module = await Test.createTestingModule({ imports: [SmallApp] }).compile();
  const app = module.createNestApplication<NestFastifyApplication>(adapter, {
    bodyParser: false,
    logger: ['error', 'warn'],
  });
  app.useGlobalFilters(new ProblemFilter(onUnexpectedError));
  await app.listen(0, '127.0.0.1');
  const { port } = app.getHttpServer().address() as AddressInfo;
  return { app, port, records, unexpected, seen, behavior: app.get(Behavior), close: () => app.close() };
}
