import { randomBytes } from 'node:crypto';
import { type EsimAccessSimulator, SIMULATOR_CREDENTIALS } from '../../simulators/esim-access/simulator.js';

/** An answer as it is on the wire, unread. */
export interface WireAnswer {
  readonly success: unknown;
  readonly errorCode: unknown;
  readonly obj: Readonly<Record<string, unknown>> | null;
}

export type WireFields = Readonly<Record<string, unknown>>;

/** Calls the simulator as a foreign client does, by default with the access code alone. @throws when the connection is cut */
export async function callWire(
  simulator: EsimAccessSimulator,
  operation: string,
  fields: object,
  headers: Readonly<Record<string, string>> = {},
): Promise<WireAnswer> {
  const answer = await fetch(`${simulator.url}/api/v1/open/${operation}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'RT-AccessCode': SIMULATOR_CREDENTIALS.accessCode,
      ...headers,
    },
    body: JSON.stringify(fields),
  });
  return (await answer.json()) as WireAnswer;
}

export function newTransactionId(): string {
  return `tst_${randomBytes(8).toString('hex')}`;
}

/** Orders eSIMs, and answers them as `esim/query` does. */
export async function orderOnWire(
  simulator: EsimAccessSimulator,
  line: object = { packageCode: 'PDE1D7' },
  transactionId = newTransactionId(),
): Promise<readonly WireFields[]> {
  const packageInfoList = [{ count: 1, ...line }];
  const { obj } = await callWire(simulator, 'esim/order', { transactionId, packageInfoList });
  const pager = { pageNum: 1, pageSize: 50 };
  const found = await callWire(simulator, 'esim/query', { orderNo: obj?.['orderNo'], pager });
  return found.obj?.['esimList'] as readonly WireFields[];
}

/** The eSIM as `esim/query` shows it now. */
export async function lookOnWire(simulator: EsimAccessSimulator, esimTranNo: unknown): Promise<WireFields> {
  const pager = { pageNum: 1, pageSize: 5 };
  const { obj } = await callWire(simulator, 'esim/query', { esimTranNo, pager });
  return (obj?.['esimList'] as readonly WireFields[])[0]!;
}
