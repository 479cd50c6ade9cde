import type { ResponseObject } from '@nestjs/swagger';
import type { DescribedOperation } from './operation.js';

/** Follow-up operations by the type of the response's object. */
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
    listRefundRequests: 'query.esim_id',
    listEvents: 'query.subject',
  },
  topup: { getTopup: 'path.id', listEvents: 'query.subject' },
  refund: { getRefundRequest: 'path.id', cancelRefundRequest: 'path.id' },
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
  requestRefund: 'refund',
  getRefundRequest: 'refund',
  cancelRefundRequest: 'refund',
};

/** Links from a response to the operations that take its id; only in the partner document, where these ids are used. */
export function linksOf({ operation, port }: DescribedOperation): Pick<ResponseObject, 'links'> {
  const answered = ANSWERED[operation.operationId ?? ''];
  if (port !== 'partner' || answered === undefined) return {};
  const links = Object.entries(NEXT[answered]!).map(([operationId, parameter]) => [
    operationId,
    { operationId, parameters: { [parameter]: '$response.body#/data/id' } },
  ]);
  return { links: Object.fromEntries(links) as NonNullable<ResponseObject['links']> };
}
