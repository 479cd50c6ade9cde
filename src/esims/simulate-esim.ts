import { Injectable } from '@nestjs/common';
import { CatalogService } from '../catalog/index.js';
import { AppError, NotFound, ValidationFailed } from '../common/errors/index.js';
import type { TenantScope } from '../common/tenant-scope.js';
import type { Tx } from '../infra/database/index.js';
import { SandboxQuota } from '../partners/index.js';
import type { EsimEntity } from './esim.entity.js';
import type { EsimObservation } from './esim-lifecycle.js';
import { EsimObserver } from './esim-observer.js';
import { EsimsRepository } from './esims.repository.js';

/** Simulated data usage: exactly one of the two. */
export type SimulatedUse = { readonly bytes: number } | { readonly percent: number };

/** Plays the device of a sandbox eSIM (D26), with the same reducer and events as real reports. */
@Injectable()
export class SimulateEsim {
  constructor(
    private readonly esims: EsimsRepository,
    private readonly observer: EsimObserver,
    private readonly catalog: CatalogService,
    private readonly sandboxQuota: SandboxQuota,
  ) {}

  /** @throws NotFound, AppError `esim_not_ready`, `limit_reached` */
  async activate(tx: Tx, scope: TenantScope, id: string): Promise<EsimEntity> {
    return this.observe(tx, scope, id, () => ({ kind: 'activated' }));
  }

  /**
   * Adds usage, capped at the eSIM's total unless its plan goes on slower. @throws NotFound, ValidationFailed, AppError `esim_not_ready`,
   * `limit_reached`
   */
  async consume(tx: Tx, scope: TenantScope, id: string, use: SimulatedUse): Promise<EsimEntity> {
    return this.observe(tx, scope, id, async (esim) => {
      const goesOn = await this.catalog.goesOn(tx, scope.mode, esim.packageId);
      return { kind: 'used', usedBytes: usedAfter(esim, use), goesOn, source: 'simulated' };
    });
  }

  /** Ends the plan in use, and the eSIM if no plan waits behind it. @throws NotFound, AppError `esim_not_ready`, `limit_reached` */
  async expire(tx: Tx, scope: TenantScope, id: string): Promise<EsimEntity> {
    return this.observe(tx, scope, id, () => ({ kind: 'validity_ended' }));
  }

  private async observe(
    tx: Tx,
    scope: TenantScope,
    id: string,
    toObservation: (esim: EsimEntity) => EsimObservation | Promise<EsimObservation>,
  ): Promise<EsimEntity> {
    const esim = await this.esims.findForUpdate(tx, scope, id);
    if (!esim) throw new NotFound();
    this.sandboxQuota.take(scope, 1);
    return this.observer.apply(tx, esim, await toObservation(esim));
  }
}

function usedAfter(esim: EsimEntity, use: SimulatedUse): number {
  if (esim.status !== 'active' && esim.status !== 'depleted') throw new AppError('esim_not_ready');
  return Math.min(esim.totalBytes ?? Number.MAX_SAFE_INTEGER, esim.usedBytes + toBytes(esim, use));
}

function toBytes(esim: EsimEntity, use: SimulatedUse): number {
  if ('bytes' in use) return use.bytes;
  if (esim.totalBytes === null) {
    throw new ValidationFailed([
      {
        pointer: '/percent',
        code: 'unlimited_package',
        message: 'must not be set for an unlimited eSIM; send bytes',
      },
    ]);
  }
  return Number((BigInt(esim.totalBytes) * BigInt(use.percent) + 99n) / 100n); // rounded up
}
