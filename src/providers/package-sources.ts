import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { AppError } from '../common/errors/index.js';
import type { Mode } from '../common/mode.js';
import { sql, toSafeInteger, type Tx } from '../infra/database/index.js';
import type { UpstreamCost } from './esim-provider.js';

/** Who provisions a package, under which name, and what one costs us there. */
export interface PackageSource {
  readonly provider: string;
  readonly upstreamPackageId: string;
  /** Null when nobody charges for it. */
  readonly unitCost: UpstreamCost | null;
}

interface SourceRow {
  provider: string;
  upstream_id: string;
  cost_micros: string;
  cost_currency: string;
}

/** Where packages come from, read in the transaction that sells one. The catalogue's synchronisation writes it. */
@Injectable()
export class PackageSources {
  /** @throws AppError `package_unavailable` when nobody provisions the package any more */
  async get(tx: Tx, mode: Mode, packageId: string): Promise<PackageSource> {
    if (mode === 'sandbox') return { provider: 'sandbox', upstreamPackageId: packageId, unitCost: null };
    const { rows } = await sql<SourceRow>(
      tx.manager,
      'SELECT provider, upstream_id, cost_micros, cost_currency FROM package_sources WHERE package_id = $1',
      [packageId],
    );
    const row = rows[0];
    if (!row) throw new AppError('package_unavailable');
    return {
      provider: row.provider,
      upstreamPackageId: row.upstream_id,
      unitCost: { micros: toSafeInteger(row.cost_micros), currency: row.cost_currency },
    };
  }

  /** Which of the packages `provider` provisions. */
  async listProvidedBy(
    manager: EntityManager,
    mode: Mode,
    provider: string,
    packageIds: readonly string[],
  ): Promise<ReadonlySet<string>> {
    if (mode === 'sandbox') return new Set(packageIds);
    const { rows } = await sql<{ package_id: string }>(
      manager,
      'SELECT package_id FROM package_sources WHERE provider = $1 AND package_id = ANY ($2::text[])',
      [provider, packageIds],
    );
    return new Set(rows.map((row) => row.package_id));
  }
}
