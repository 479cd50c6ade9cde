import { Inject, Injectable } from '@nestjs/common';
import type { Logger } from 'pino';
import { handleApart } from '../../infra/batcher.js';
import { mayBeOfOneRow, sqlState } from '../../infra/database/index.js';
import { LOGGER } from '../../infra/logging.js';
import type { PackageSeller } from '../live-catalog.repository.js';
import type { LivePackage } from '../live-packages.js';

export interface StoredPackages {
  /** New or changed. */
  readonly changed: number;
  /** Ids of those that cannot be stored. */
  readonly refused: readonly string[];
}

/** Of a whole page that is refused, by a fault of ours, the log names no more. */
const MOST_NAMED = 20;

/** Stores packages of a provider but for those that PostgreSQL refuses, say for a NUL in a title (D43). */
@Injectable()
export class StorePackages {
  constructor(@Inject(LOGGER) private readonly logger: Logger) {}

  /**
   * @param write writes packages in one transaction and answers how many were new or changed
   * @throws whatever `write` throws that is no package's fault
   */
  async execute(
    { provider }: PackageSeller,
    packages: readonly LivePackage[],
    write: (packages: readonly LivePackage[]) => Promise<number>,
  ): Promise<StoredPackages> {
    let changed = 0;
    const refused: string[] = [];
    let firstError: unknown;
    const handle = async (some: readonly LivePackage[]): Promise<void> => {
      changed += some.length === 0 ? 0 : await write(some);
    };
    await handleApart(packages, {
      handle,
      failed: ({ item }, error) => {
        firstError ??= error;
        refused.push(item.id);
      },
      isItemFault: isPackageFault,
    });
    if (refused.length > 0) this.logRefused(provider, refused, firstError);
    return { changed, refused };
  }

  private logRefused(provider: string, refused: readonly string[], err: unknown): void {
    const packageIds = refused.slice(0, MOST_NAMED);
    const line = { event: 'catalog.packages_refused', provider, refused: refused.length, packageIds, err };
    this.logger.error(line, 'packages of the list cannot be stored');
  }
}

/** A statement that does not fit the schema is no package's fault, nor is a row that somebody else has locked. */
function isPackageFault(error: unknown): boolean {
  return mayBeOfOneRow(error) && !/^(42|55)/.test(sqlState(error) ?? '');
}
