import { useQueryClient } from '@tanstack/react-query';
import { post } from '../../api/client.ts';
import { refreshDeliveryLog } from '../../api/queries.ts';
import type { Delivery, Endpoint } from '../../api/types.ts';
import { useAction } from '../../api/use-action.ts';
import { notify } from '../../components/toasts.tsx';

/** Sends a signed `webhook.test` to an endpoint; it appears in the delivery log. */
export function useSendTest(endpoint: Endpoint) {
  const queries = useQueryClient();
  return useAction(async () => {
    await post<Delivery>(`webhook-endpoints/${endpoint.id}/test`);
    refreshDeliveryLog(queries, endpoint.id);
    notify('Test event sent. See the delivery log for the response.');
  });
}
