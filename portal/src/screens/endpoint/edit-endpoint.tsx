import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { send } from '../../api/client.ts';
import type { Endpoint } from '../../api/types.ts';
import { useAction } from '../../api/use-action.ts';
import { Dialog } from '../../components/dialog.tsx';
import { ErrorNote } from '../../components/feedback.tsx';
import { Cancel, Submit } from '../../components/form.tsx';
import { notify } from '../../components/toasts.tsx';
import {
  EndpointFields,
  type EndpointSettings,
  settingsOf,
  type TypedEndpoint,
} from '../webhooks/endpoint-fields.tsx';

/** Changes an endpoint's settings. The notice afterwards offers to undo it. */
export function EditEndpointDialog({ endpoint, onClose }: { endpoint: Endpoint; onClose: () => void }) {
  const [fields, setFields] = useState<TypedEndpoint>({
    url: endpoint.url,
    types: [...(endpoint.event_types ?? [])],
    levels: (endpoint.usage_levels ?? []).join(', '),
    description: endpoint.description ?? '',
  });
  const queries = useQueryClient();
  const save = async (settings: EndpointSettings) => {
    await send('PATCH', `webhook-endpoints/${endpoint.id}`, settings);
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
    await save(settingsOf(fields));
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
      <EndpointFields value={fields} onChange={setFields} error={error} />
      <ErrorNote error={error} />
    </Dialog>
  );
}
