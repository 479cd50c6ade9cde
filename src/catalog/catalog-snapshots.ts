import { Injectable } from '@nestjs/common';
import type { Mode } from '../common/mode.js';
import { CatalogRepository } from './catalog.repository.js';
import type { PackageEntity } from './package.entity.js';

/** All packages of a mode at one version, newest first. */
export interface CatalogSnapshot {
  /** Moves with every change; the version of a price list is part of it. */
  readonly version: string;
  readonly packages: readonly PackageEntity[];
  /** Serialized pages of this version, by query; gone with the snapshot. */
  readonly pages: Map<string, unknown>;
}

interface Held {
  snapshot: CatalogSnapshot;
  checkedAtMs: number;
}

/** A list may lag the table by this much; orders read the table itself. */
const CHECK_INTERVAL_MS = 1_000;

/** The catalogue in memory, reloaded when its version has moved. */
@Injectable()
export class CatalogSnapshots {
  private readonly held = new Map<Mode, Held>();
  private readonly loading = new Map<Mode, Promise<CatalogSnapshot>>();

  constructor(private readonly catalog: CatalogRepository) {}

  /** The snapshot of `mode`, checked within the last second. Synchronous while it is fresh. */
  get(mode: Mode): CatalogSnapshot | Promise<CatalogSnapshot> {
    const held = this.held.get(mode);
    if (held && performance.now() - held.checkedAtMs < CHECK_INTERVAL_MS) return held.snapshot;
    const loading = this.loading.get(mode) ?? this.refresh(mode, held);
    this.loading.set(mode, loading);
    return loading;
  }

  private async refresh(mode: Mode, held: Held | undefined): Promise<CatalogSnapshot> {
    try {
      const version = String(await this.catalog.getVersion(mode));
      const snapshot =
        held?.snapshot.version === version
          ? held.snapshot
          : { version, packages: await this.catalog.listAll(mode), pages: new Map<string, unknown>() };
      this.held.set(mode, { snapshot, checkedAtMs: performance.now() });
      return snapshot;
    } finally {
      this.loading.delete(mode);
    }
  }
}
