import { eventually } from './eventually.js';
import type { ApiAnswer, HttpClient } from './http-client.js';

/**
 * Waits until this call, and with it all earlier calls of the same process, is in the call log, which is written
 * shortly after the response (D38). Returns its row.
 */
export async function loggedCall(admin: HttpClient, answer: ApiAnswer): Promise<Record<string, unknown>> {
  const id = answer.headers.get('x-request-id') ?? '';
  return eventually(`the call ${id} is in the log`, async () => {
    const found = await admin.get(`/internal/v1/requests/${id}`);
    return found.status === 200 && (found.body.data as Record<string, unknown>);
  });
}
