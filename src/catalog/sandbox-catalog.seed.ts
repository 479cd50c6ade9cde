import { Injectable } from '@nestjs/common';
import { Transactions } from '../infra/database/index.js';
import { CatalogRepository } from './catalog.repository.js';
import { sandboxPackages } from './sandbox/sandbox-packages.js';

/** Brings the Sandbox catalogue of this release into the table; part of `migrate`, so every role finds it. */
@Injectable()
export class SandboxCatalogSeed {
  constructor(
    private readonly transactions: Transactions,
    private readonly catalog: CatalogRepository,
  ) {}

  /** Answers how many packages were new or changed; repeating it changes nothing. */
  async run(): Promise<number> {
    return this.transactions.run((tx) => this.catalog.upsert(tx, 'sandbox', sandboxPackages()));
  }
}
