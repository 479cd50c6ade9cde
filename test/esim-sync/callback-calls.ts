import { request as httpRequest } from 'node:http';
import { SIMULATOR_CREDENTIALS } from '../../simulators/esim-access/simulator.js';
import { SECRET } from './live-world.js';

/** Settings of a worker that accepts callbacks. */
export const ENV = {
  // Nothing listens there. These tests do not cover the queries that follow a callback.
  ESIM_ACCESS_BASE_URL: 'http://127.0.0.1:9',
  ESIM_ACCESS_CODE: SIMULATOR_CREDENTIALS.accessCode,
  ESIM_ACCESS_SECRET: SIMULATOR_CREDENTIALS.secretKey,
  CALLBACK_HOST: '127.0.0.1',
  CALLBACK_PORT: '0',
  CALLBACK_SECRET: SECRET,
};
export const HEALTH = { notifyType: 'CHECK_HEALTH', content: { orderNo: '1234567890', orderStatus: 'Test' } };
export const HINT = { notifyType: 'ESIM_STATUS', content: { esimTranNo: '2500000000001' } };
const JSON_TYPE = { 'content-type': 'application/json' };
export const PATH = `/callbacks/esim_access/${SECRET}`;

export interface Answer {
  readonly status: number;
  readonly body: string;
  readonly headers: Readonly<Record<string, unknown>>;
}

export interface CallbackCall {
  readonly method?: string;
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly url?: string;
}

/** Sends a raw call to the listener at `url`, without the headers that `fetch` adds. */
export function callAt(
  path: string,
  { method = 'POST', body = JSON.stringify(HEALTH), headers = {}, url = '' }: CallbackCall = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(url + path, { method, headers: { ...JSON_TYPE, ...headers } }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk) => (text += chunk));
      response.on('end', () => {
        const { date: _date, ...kept } = response.headers;
        resolve({ status: response.statusCode!, body: text, headers: kept });
      });
    });
    request.on('error', reject);
    request.end(method === 'HEAD' ? undefined : body);
  });
}
