import { Injectable } from '@nestjs/common';
import { InjectEntityManager } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import type { Mode } from '../common/mode.js';
import type { Page } from '../common/page.js';
import { KeysetPages, type ListOptions } from '../infra/database/index.js';
import { ApiCallEntity } from './api-call.entity.js';

/** What a reader may choose; `createdAfter` is inclusive, `createdBefore` exclusive (D11). */
export interface CallFilters {
  readonly requestId: string | undefined;
  readonly keyId: string | undefined;
  readonly method: string | undefined;
  readonly route: string | undefined;
  readonly status: number | undefined;
  readonly mode: Mode | undefined;
  readonly replayOf: string | undefined;
  readonly createdAfter: Date | undefined;
  readonly createdBefore: Date | undefined;
}

const CONDITIONS: Readonly<Record<keyof CallFilters, string>> = {
  requestId: 't.id = :requestId',
  keyId: 't.keyId = :keyId',
  method: 't.method = :method',
  route: 't.route = :route',
  status: 't.status = :status',
  mode: 't.mode = :mode',
  replayOf: 't.replayOf = :replayOf',
  createdAfter: 't.createdAt >= :createdAfter',
  createdBefore: 't.createdAt < :createdBefore',
};

/** The reading side of `api_calls`, for the portal team (D38). */
@Injectable()
export class CallLogRepository {
  constructor(
    @InjectEntityManager() private readonly manager: EntityManager,
    private readonly pages: KeysetPages,
  ) {}

  async findByRequestId(requestId: string): Promise<ApiCallEntity | null> {
    return this.manager.findOneBy(ApiCallEntity, { id: requestId });
  }

  async list(partnerId: string, filters: CallFilters, options: ListOptions): Promise<Page<ApiCallEntity>> {
    const query = this.manager
      .createQueryBuilder(ApiCallEntity, 't')
      .where('t.partnerId = :partnerId', { partnerId });
    for (const name of Object.keys(CONDITIONS) as (keyof CallFilters)[]) {
      if (filters[name] !== undefined) query.andWhere(CONDITIONS[name], { [name]: filters[name] });
    }
    return this.pages.list(query, options);
  }
}
