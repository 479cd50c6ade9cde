import { Controller, Get, Module, Post, UseGuards, UseInterceptors } from '@nestjs/common';
import { DiscoveryModule, DiscoveryService } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import { describe, expect, it } from 'vitest';
import { ApiModule } from '../../../src/apps/api.app.js';
import { startHttpApp } from '../../../src/apps/http-app.js';
import { BearerKeyGuard, PartnerAuthenticator } from '../../../src/auth/index.js';
import {
  assertEveryPostIsIdempotent,
  IdempotencyInterceptor,
  IdempotentPost,
} from '../../../src/infra/idempotency/index.js';
import { startTestService } from '../../harness/index.js';

class ThingResponse {}

@Controller('things')
class IdempotentController {
  @IdempotentPost('/', {
    status: 201,
    response: ThingResponse,
    summary: 'Make a thing',
    description: 'A thing.',
  })
  make(): string {
    return 'ok';
  }

  @Get()
  list(): string {
    return 'ok';
  }
}

@UseInterceptors(IdempotencyInterceptor)
@Controller('others')
class IdempotentClassController {
  @Post()
  make(): string {
    return 'ok';
  }
}

@UseGuards(BearerKeyGuard)
@Controller('open')
class OpenController {
  @Post('one')
  one(): string {
    return 'ok';
  }

  @IdempotentPost('two', {
    status: 200,
    response: ThingResponse,
    summary: 'Close a thing',
    description: 'A thing.',
  })
  two(): string {
    return 'ok';
  }
}

async function discoveryOf(controllers: (new () => object)[]): Promise<DiscoveryService> {
  @Module({ imports: [DiscoveryModule], controllers })
  class RoutesModule {}
  const module = await Test.createTestingModule({ imports: [RoutesModule] }).compile();
  return module.get(DiscoveryService);
}

describe('assertEveryPostIsIdempotent', () => {
  it('stops the boot with the names of POST routes that would repeat their effect on a retry', async () => {
    const discovery = await discoveryOf([IdempotentController, IdempotentClassController, OpenController]);
    expect(() => assertEveryPostIsIdempotent(discovery)).toThrow(
      'POST routes without idempotency: OpenController.one (one)',
    );
  });

  it('passes when every POST has the interceptor, by its method or its class', async () => {
    const discovery = await discoveryOf([IdempotentController, IdempotentClassController]);
    expect(() => assertEveryPostIsIdempotent(discovery)).not.toThrow();
  });
});

describe('the boot of the partner API', () => {
  it('fails while a POST route is not idempotent', async () => {
    const service = await startTestService();
    try {
      const { resources } = service.process;
      const module = {
        module: OpenController,
        imports: [ApiModule.of(resources)],
        controllers: [OpenController],
      };
      const listen = { host: '127.0.0.1', port: 0 };
      const boot = startHttpApp(resources, {
        module,
        port: 'partner',
        authenticator: PartnerAuthenticator,
        listen,
        idempotencyKeyRequired: true,
      });
      await expect(boot).rejects.toThrow('POST routes without idempotency: OpenController.one (one)');
    } finally {
      await service.stop();
    }
  });
});
