import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { post } from '../../api/client.ts';
import type { CreatedEndpoint, Mode } from '../../api/types.ts';
import { useAction } from '../../api/use-action.ts';
import { Dialog } from '../../components/dialog.tsx';
import { ErrorNote } from '../../components/feedback.tsx';
import { Cancel, fieldError, Submit, TextField } from '../../components/form.tsx';
import { SecretLost, SecretOnce } from '../../components/secret-once.tsx';
import { MODE_NAMES } from '../../layout/use-mode.ts';
import { type Subscription, SubscriptionFields } from './subscription-fields.tsx';
import { levelsOf } from './subscriptions.ts';

const NONE: Subscription = { types: [], levels: '', description: '' };

/** Asks for the URL and the event types, then shows the signing secret once. */
export function NewEndpointDialog({ mode, onClose }: { mode: Mode; onClose: () => void }) {
  const [url, setUrl] = useState('');
  const [subscription, setSubscription] = useState(NONE);
  const [created, setCreated] = useState<CreatedEndpoint | null>(null);
  const queries = useQueryClient();
  const { busy, error, run } = useAction(async () => {
    const { types, levels, description } = subscription;
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
      <SubscriptionFields value={subscription} onChange={setSubscription} error={error} />
      <ErrorNote error={error} />
    </Dialog>
  );
}
