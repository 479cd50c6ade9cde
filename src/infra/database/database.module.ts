import { type DynamicModule, Global, Module } from '@nestjs/common';
import { getDataSourceToken, getEntityManagerToken } from '@nestjs/typeorm';
import type { Pool } from 'pg';
import type { DataSource } from 'typeorm';
import { KeysetPages } from './keyset-page.js';
import { Transactions } from './transactions.js';

/**
 * Injection token of a small `pg.Pool` apart from TypeORM's, for the two statements that every call runs (key
 * check with rate limit, call log): a burst of long transactions must not keep the edge from responding 401 or 429.
 */
export const EDGE_POOL = Symbol('EDGE_POOL');

/** Gives a process's connections to a Nest app by value, so that no app can close them under another. */
@Global()
@Module({})
export class DatabaseModule {
  static of(dataSource: DataSource, edgePool: Pool): DynamicModule {
    return {
      module: DatabaseModule,
      providers: [
        { provide: getDataSourceToken(), useValue: dataSource },
        { provide: getEntityManagerToken(), useValue: dataSource.manager },
        { provide: EDGE_POOL, useValue: edgePool },
        Transactions,
        KeysetPages,
      ],
      exports: [getDataSourceToken(), getEntityManagerToken(), EDGE_POOL, Transactions, KeysetPages],
    };
  }
}
