import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { send } from '../../api/client.ts';
import type { Endpoint } from '../../api/types.ts';
import { useAction } from '../../api/use-action.ts';
import { Dialog } from '../../components/dialog.tsx';
import { ErrorNote } from '../../components/feedback.tsx';
import { Cancel, fieldError, Submit, TextField } from '../../components/form.tsx';
import { notify } from '../../components/toasts.tsx';
import { SubscriptionFields } from '../webhooks/subscription-fields.tsx';
import { levelsOf } from '../webhooks/subscriptions.ts';

type Fields = Pick<Endpoint, 'url' | 'description'> & {
  event_types: readonly string[] | null;
  usage_levels: number[] | null;
};

/** Changes an endpoint's settings. The notice afterwards offers to undo it. */
export function EditEndpointDialog({ endpoint, onClose }: { endpoint: Endpoint; onClose: () => void }) {
  const [url, setUrl] = useState(endpoint.url);
  const [subscription, setSubscription] = useState({
    types: [...(endpoint.event_types ?? [])] as string[],
    levels: (endpoint.usage_levels ?? []).join(', '),
    description: endpoint.description ?? '',
  });
  const queries = useQueryClient();
  const save = async (fields: Fields) => {
    await send('PATCH', `webhook-endpoints/${endpoint.id}`, fields);
    await queries.invalidateQueries({ queryKey: ['webhook-endpoints'] });
  };
  // The dialog is closed by then, so the previous values are captured here.
  const undo = async () => {
    const { url, description, event_types, usage_levels } = endpoint;
    try {
      await save({ url, description, event_types, usage_levels });
      notify('Your change was undone.', { about: endpoint.id });
    } catch {
      notify('We could not undo the change. Use “Edit endpoint” to see the current settings.', {
        about: endpoint.id,
      });
    }
  };
  const { busy, error, run } = useAction(async () => {
    const { types, levels, description } = subscription;
    await save({
      url: url.trim(),
      description: description.trim() === '' ? null : description.trim(),
      event_types: types.length === 0 ? null : types,
      usage_levels: levelsOf(levels),
    });
    onClose();
    notify('Endpoint updated.', { about: endpoint.id, undo: () => void undo() });
  });
  return (
    <Dialog
      onClose={onClose}
      title="Edit endpoint"
      onSubmit={() => void run()}
      live={endpoint.mode === 'live' && <strong>Live endpoint.</strong>}
      foot={
        <>
          <Cancel onClick={onClose} />
          <Submit busy={busy}>Save</Submit>
        </>
      }
    >
      <TextField
        label="URL"
        type="url"
        value={url}
        onChange={setUrl}
        required
        error={fieldError(error, 'url')}
      />
      <SubscriptionFields value={subscription} onChange={setSubscription} error={error} />
      <ErrorNote error={error} />
    </Dialog>
  );
}
