import { Inject, Injectable } from '@nestjs/common';
import type { Logger } from 'pino';
import { handleApart } from '../../infra/batcher.js';
import { mayBeOfOneRow, sqlState } from '../../infra/database/index.js';
import { LOGGER } from '../../infra/logging.js';
import type { PackageSeller } from '../live-catalog.repository.js';
import type { LivePackage } from '../live-packages.js';

export interface StoredPackages {
  /** Number of new or changed packages. */
  readonly changed: number;
  /** Ids of packages that cannot be stored. */
  readonly refused: readonly string[];
}

/** Maximum ids per log line, in case a bug on our side makes a whole page fail. */
const MAX_NAMED = 20;

/** Stores a provider's packages except those that PostgreSQL refuses, for example for a NUL in a title (D43). */
@Injectable()
export class StorePackages {
  constructor(@Inject(LOGGER) private readonly logger: Logger) {}

  /**
   * @param write writes packages in one transaction and returns the number of new or changed ones
   * @throws any error of `write` that no package caused
   */
  async store(
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
    const packageIds = refused.slice(0, MAX_NAMED);
    const line = { event: 'catalog.packages_refused', provider, refused: refused.length, packageIds, err };
    this.logger.error(line, 'some packages of the list could not be stored');
  }
}

/** A statement that does not fit the schema is not a package's fault, and neither is a locked row. */
function isPackageFault(error: unknown): boolean {
  return mayBeOfOneRow(error) && !/^(42|55)/.test(sqlState(error) ?? '');
}
