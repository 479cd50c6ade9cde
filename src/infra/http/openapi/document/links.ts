import type { ResponseObject } from '@nestjs/swagger';
import type { DescribedOperation } from './operation.js';

/** What the answer's object is, and so what can be asked about it next. */
const NEXT: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  order: {
    getOrder: 'path.id',
    cancelOrder: 'path.id',
    listEsims: 'query.order_id',
    listEvents: 'query.subject',
  },
  esim: {
    getEsim: 'path.id',
    getQrCode: 'path.id',
    getUsage: 'path.id',
    listTopupPackages: 'path.id',
    listTopups: 'query.esim_id',
    listEvents: 'query.subject',
  },
  topup: { getTopup: 'path.id', listEvents: 'query.subject' },
};

const ANSWERED: Readonly<Record<string, keyof typeof NEXT>> = {
  placeOrder: 'order',
  getOrder: 'order',
  cancelOrder: 'order',
  getEsim: 'esim',
  activateEsim: 'esim',
  consumeData: 'esim',
  expireEsim: 'esim',
  placeTopup: 'topup',
  getTopup: 'topup',
};

/** Links from an answer to the operations that take its id; a partner's alone, whose ids these are. */
export function linksOf({ operation, port }: DescribedOperation): Pick<ResponseObject, 'links'> {
  const answered = ANSWERED[operation.operationId ?? ''];
  if (port !== 'partner' || answered === undefined) return {};
  const links = Object.entries(NEXT[answered]!).map(([operationId, parameter]) => [
    operationId,
    { operationId, parameters: { [parameter]: '$response.body#/data/id' } },
  ]);
  return { links: Object.fromEntries(links) as NonNullable<ResponseObject['links']> };
}
