import { arrayAt, countAt, objectAt } from '../http/index.js';
import type { CallOptions, EsimAccessApi } from './esim-access-api.js';
import { type QueriedEsim, toQueriedEsim } from './queried-esim.js';
import { CODES, EsimAccessRefusal } from './refusal.js';

/** eSIMs that the provider made between the two times. */
export interface IssueWindow {
  readonly fromMs: number;
  readonly toMs: number;
}

export interface EsimPage {
  readonly esims: readonly unknown[];
  readonly pages: number;
}

/** The most that the contract allows. */
export const PAGE_SIZE = 500;
const FIRST_PAGE = { pageNum: 1, pageSize: PAGE_SIZE };

/** `esim/query`, by each of the keys that we use. */
export class EsimSearch {
  constructor(private readonly api: EsimAccessApi) {}

  /** `allocating` while profiles are made; null for an order that the provider does not know. */
  async ofOrder(
    orderNo: string,
    options: CallOptions,
  ): Promise<readonly QueriedEsim[] | 'allocating' | null> {
    try {
      const { esims } = await this.query({ orderNo, pager: FIRST_PAGE }, options);
      return esims.length === 0 ? null : esims.map(toQueriedEsim);
    } catch (error) {
      if (isRefusal(error, CODES.allocating)) return 'allocating';
      if (isRefusal(error, CODES.unknownOrder)) return null;
      throw error;
    }
  }

  /** Null when the provider does not know it. */
  async byTranNo(esimTranNo: string, options: CallOptions): Promise<QueriedEsim | null> {
    try {
      const { esims } = await this.query({ esimTranNo, pager: FIRST_PAGE }, options);
      return esims.map(toQueriedEsim).find((esim) => esim.esimTranNo === esimTranNo) ?? null;
    } catch (error) {
      if (isRefusal(error, CODES.unknownEsim) || isRefusal(error, CODES.unknownOrder)) return null;
      throw error;
    }
  }

  /** One page of a window; its eSIMs unread, for one that is ill-formed must not hide the others. */
  async page(window: IssueWindow, pageNum: number, options: CallOptions): Promise<EsimPage> {
    const { fromMs, toMs } = window;
    const fields = { startTime: toWireTime(fromMs), endTime: toWireTime(toMs) };
    return this.query({ ...fields, pager: { pageNum, pageSize: PAGE_SIZE } }, options);
  }

  private async query(fields: object, options: CallOptions): Promise<EsimPage> {
    const answer = await this.api.call('esim/query', fields, options);
    const total = countAt(objectAt(answer, 'pager'), 'total');
    return { esims: arrayAt(answer, 'esimList'), pages: Math.ceil(total / PAGE_SIZE) };
  }
}

export function isRefusal(error: unknown, code: string): error is EsimAccessRefusal {
  return error instanceof EsimAccessRefusal && error.code === code;
}

function toWireTime(atMs: number): string {
  return new Date(atMs).toISOString();
}
