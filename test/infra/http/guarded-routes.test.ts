import { Controller, Get, Module, UseGuards } from '@nestjs/common';
import { DiscoveryModule, DiscoveryService } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import { describe, expect, it } from 'vitest';
import { BearerKeyGuard, SandboxOnlyGuard } from '../../../src/auth/index.js';
import { assertEveryRouteIsGuarded } from '../../../src/infra/http/index.js';

@UseGuards(BearerKeyGuard)
@Controller('guarded')
class GuardedController {
  @Get()
  list(): string {
    return 'ok';
  }
}

@Controller('open')
class OpenController {
  @Get('one')
  one(): string {
    return 'ok';
  }

  @UseGuards(BearerKeyGuard)
  @Get('two')
  two(): string {
    return 'ok';
  }

  // A guard that restricts but does not authenticate is not enough.
  @UseGuards(SandboxOnlyGuard)
  @Get('three')
  three(): string {
    return 'ok';
  }
}

async function discoveryOf(controllers: (new () => object)[]): Promise<DiscoveryService> {
  @Module({ imports: [DiscoveryModule], controllers })
  class RoutesModule {}
  const module = await Test.createTestingModule({ imports: [RoutesModule] }).compile();
  return module.get(DiscoveryService);
}

describe('assertEveryRouteIsGuarded', () => {
  it('stops the boot with the names of unguarded routes', async () => {
    const discovery = await discoveryOf([GuardedController, OpenController]);
    expect(() => assertEveryRouteIsGuarded(discovery)).toThrow(
      'routes without an authenticating guard: OpenController.one (one), OpenController.three (three)',
    );
  });

  it('passes when every route is guarded', async () => {
    const discovery = await discoveryOf([GuardedController]);
    expect(() => assertEveryRouteIsGuarded(discovery)).not.toThrow();
  });
});
