import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { post } from '../../api/client.ts';
import type { CreatedEndpoint, Mode } from '../../api/types.ts';
import { useAction } from '../../api/use-action.ts';
import { Dialog } from '../../components/dialog.tsx';
import { ErrorNote } from '../../components/feedback.tsx';
import { Checkboxes, fieldError, Submit, TextField } from '../../components/form.tsx';
import { SecretLost, SecretOnce } from '../../components/secret-once.tsx';
import { LEVELS_HINT, levelsOf, SUBSCRIPTION_HINT, SUBSCRIPTION_OPTIONS } from './subscriptions.ts';

/** Asks for the URL and the event types, then shows the signing secret once. */
export function NewEndpointDialog({ mode, onClose }: { mode: Mode; onClose: () => void }) {
  const [url, setUrl] = useState('');
  const [description, setDescription] = useState('');
  const [types, setTypes] = useState<string[]>([]);
  const [levels, setLevels] = useState('');
  const [created, setCreated] = useState<CreatedEndpoint | null>(null);
  const queries = useQueryClient();
  const { busy, error, run } = useAction(async () => {
    const body = {
      mode,
      url: url.trim(),
      ...(description.trim() === '' ? {} : { description: description.trim() }),
      ...(types.length === 0 ? {} : { event_types: types }),
      ...(levels.trim() === '' ? {} : { usage_levels: levelsOf(levels) }),
    };
    setCreated(await post<CreatedEndpoint>('webhook-endpoints', body));
    void queries.invalidateQueries({ queryKey: ['webhook-endpoints'] });
  });
  const done = () => {
    setCreated(null);
    onClose();
  };
  if (created?.secret === null)
    return (
      <Dialog open onClose={done} title="The signing secret cannot be shown">
        <SecretLost what="signing secret" onDone={done}>
          The endpoint was created. Use “Rotate secret” to get a signing secret.
        </SecretLost>
      </Dialog>
    );
  if (created)
    return (
      <Dialog open onClose={done} title="The signing secret" dismissible={false}>
        <SecretOnce
          what="signing secret"
          secret={created.secret}
          hint="Your server uses it to verify that webhooks come from us."
          onDone={done}
        />
      </Dialog>
    );
  return (
    <Dialog
      open
      onClose={onClose}
      title="New endpoint"
      description={`It receives ${mode === 'live' ? 'Live' : 'Sandbox'} events.`}
    >
      <form
        className="stack"
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          void run();
        }}
      >
        <TextField
          label="URL"
          type="url"
          value={url}
          onChange={setUrl}
          required
          placeholder="https://example.com/webhooks"
          hint="A public HTTPS URL that accepts POST and returns 2xx."
          error={fieldError(error, 'url')}
        />
        <Checkboxes
          legend="Event types"
          hint={SUBSCRIPTION_HINT}
          options={SUBSCRIPTION_OPTIONS}
          chosen={types}
          onChange={setTypes}
        />
        <TextField
          label="Usage levels (optional)"
          value={levels}
          onChange={setLevels}
          placeholder="25, 90"
          hint={LEVELS_HINT}
          error={fieldError(error, 'usage_levels')}
        />
        <TextField
          label="Description (optional)"
          value={description}
          onChange={setDescription}
          error={fieldError(error, 'description')}
        />
        <ErrorNote error={error} />
        <div className="actions">
          <button type="button" className="button" onClick={onClose}>
            Cancel
          </button>
          <Submit busy={busy}>Create endpoint</Submit>
        </div>
      </form>
    </Dialog>
  );
}
