import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { post } from '../../api/client.ts';
import type { CreatedEndpoint, Mode } from '../../api/types.ts';
import { useAction } from '../../api/use-action.ts';
import { Dialog } from '../../components/dialog.tsx';
import { ErrorNote } from '../../components/feedback.tsx';
import { Cancel, Submit } from '../../components/form.tsx';
import { SecretLost, SecretOnce } from '../../components/secret-once.tsx';
import { MODE_NAMES } from '../../layout/use-mode.ts';
import { EndpointFields, settingsOf, type TypedEndpoint } from './endpoint-fields.tsx';

const EMPTY: TypedEndpoint = { url: '', types: [], levels: '', description: '' };

/** Asks for the URL and the event types, then shows the signing secret once. */
export function NewEndpointDialog({ mode, onClose }: { mode: Mode; onClose: () => void }) {
  const [fields, setFields] = useState(EMPTY);
  const [created, setCreated] = useState<CreatedEndpoint | null>(null);
  const queries = useQueryClient();
  const { busy, error, run } = useAction(async () => {
    setCreated(await post<CreatedEndpoint>('webhook-endpoints', { mode, ...settingsOf(fields) }));
    void queries.invalidateQueries({ queryKey: ['webhook-endpoints'] });
  });
  const done = () => {
    setCreated(null);
    onClose();
  };
  if (created?.secret === null)
    return (
      <SecretLost title="The signing secret cannot be shown" what="signing secret" onDone={done}>
        The endpoint was created. Use “Rotate secret” to get a signing secret.
      </SecretLost>
    );
  if (created)
    return (
      <SecretOnce
        title="The signing secret"
        what="signing secret"
        of={created.url}
        secret={created.secret}
        hint="Your server uses it to verify that webhooks come from us."
        onDone={done}
      />
    );
  return (
    <Dialog
      onClose={onClose}
      title="New endpoint"
      description={`It receives ${MODE_NAMES[mode]} events.`}
      onSubmit={() => void run()}
      live={mode === 'live' && <strong>Live endpoint.</strong>}
      foot={
        <>
          <Cancel onClick={onClose} />
          <Submit busy={busy}>Create endpoint</Submit>
        </>
      }
    >
      <EndpointFields value={fields} onChange={setFields} error={error} />
      <ErrorNote error={error} />
    </Dialog>
  );
}
