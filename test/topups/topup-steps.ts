import { expect } from 'vitest';
import { eventually, PATIENCE_MS } from '../harness/eventually.js';
import type { HttpClient } from '../harness/http-client.js';
import type { Json } from '../harness/order-steps.js';

export const GB = 1_000_000_000;
export const DAY_MS = 86_400_000;
/** Matching bases and top-ups of the sandbox catalog. */
export const BASE = 'pkg_fr_1gb_7d';
export const TOPUP_1GB_7D = 'pkg_fr_topup_1gb_7d';
export const TOPUP_DAYS = 'pkg_fr_topup_7d';
export const TOPUP_FAIL = 'pkg_test_topup_fail';

/** Requests a top-up and returns it as accepted. */
export async function placeTopup(api: HttpClient, body: object): Promise<Json> {
  const answer = await api.post('/v1/topups', body);
  expect(answer.status, answer.text).toBe(202);
  return answer.body.data as Json;
}

/** Waits until the top-up has ended, and returns it. */
export async function topupEnded(api: HttpClient, id: string, withinMs = PATIENCE_MS): Promise<Json> {
  return eventually(
    `top-up ${id} ends`,
    async () => {
      const answer = await api.get(`/v1/topups/${id}`);
      expect(answer.status, answer.text).toBe(200);
      const data = answer.body.data as Json;
      return data['status'] === 'pending' || data['status'] === 'processing' ? null : data;
    },
    withinMs,
  );
}

/** Tops up an eSIM and waits for the end. */
export async function topUp(api: HttpClient, esimId: string, packageId = TOPUP_1GB_7D): Promise<Json> {
  const { id } = await placeTopup(api, { esim_id: esimId, package_id: packageId });
  return topupEnded(api, id as string);
}
