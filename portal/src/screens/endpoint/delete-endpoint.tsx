import { useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { send } from '../../api/client.ts';
import type { Endpoint } from '../../api/types.ts';
import { useAction } from '../../api/use-action.ts';
import { Dialog } from '../../components/dialog.tsx';
import { ErrorNote } from '../../components/feedback.tsx';
import { Cancel, Submit } from '../../components/form.tsx';

export function DeleteEndpointDialog({ endpoint, onClose }: { endpoint: Endpoint; onClose: () => void }) {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const { busy, error, run } = useAction(async () => {
    await send('DELETE', `webhook-endpoints/${endpoint.id}`);
    await navigate({ to: '/developers/webhooks' });
    void queries.invalidateQueries({ queryKey: ['webhook-endpoints'] });
  });
  return (
    <Dialog
      onClose={onClose}
      title="Delete endpoint"
      description={`We stop sending events to ${endpoint.url} and discard its pending deliveries. This cannot be undone. To pause instead, switch the endpoint off.`}
      onSubmit={() => void run()}
      live={endpoint.mode === 'live' && <strong>Live endpoint.</strong>}
      foot={
        <>
          <Cancel onClick={onClose}>Keep it</Cancel>
          <Submit busy={busy} danger>
            Delete endpoint
          </Submit>
        </>
      }
    >
      <ErrorNote error={error} />
    </Dialog>
  );
}
