import { Injectable } from '@nestjs/common';
import { EventRecorder } from '../events/index.js';
import { databaseNow, type Tx } from '../infra/database/index.js';
import type { EsimEntity } from './esim.entity.js';
import { type EsimObservation, observe } from './esim-lifecycle.js';
import { EsimsRepository } from './esims.repository.js';

/** Applies observations to locked eSIMs and records the events they cause, in one transaction (D24). */
@Injectable()
export class EsimObserver {
  constructor(
    private readonly esims: EsimsRepository,
    private readonly events: EventRecorder,
  ) {}

  /**
   * `esim` must have been read with its row locked in `tx`.
   * @throws AppError `esim_not_ready`
   */
  async apply(tx: Tx, esim: EsimEntity, observation: EsimObservation): Promise<EsimEntity> {
    const now = await databaseNow(tx);
    const { changes, events } = observe(esim, observation, now);
    if (Object.keys(changes).length === 0) return esim;
    const written = { ...changes, updatedAt: now };
    await this.esims.update(tx, esim.id, written);
    await this.events.record(tx, events);
    return Object.assign(esim, written);
  }
}
