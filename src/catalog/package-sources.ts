import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import type { Mode } from '../common/mode.js';
import { sql } from '../infra/database/index.js';

/** Which provider provisions which live package. The catalogue's synchronisation writes it. */
@Injectable()
export class PackageSources {
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
