import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { post } from '../../api/client.ts';
import type { Endpoint, RotatedSecret } from '../../api/types.ts';
import { useAction } from '../../api/use-action.ts';
import { Dialog } from '../../components/dialog.tsx';
import { ErrorNote } from '../../components/feedback.tsx';
import { Radios, Submit } from '../../components/form.tsx';
import { SecretLost, SecretOnce } from '../../components/secret-once.tsx';
import { Time } from '../../components/time.tsx';
import { notify } from '../../components/toasts.tsx';
import { GRACES } from '../api-keys/rotate-key.tsx';

/** Creates a new signing secret; both secrets sign during a grace period. Also ends a rotation in progress. */
export function RotateSecretDialog({ endpoint, onClose }: { endpoint: Endpoint; onClose: () => void }) {
  const [grace, setGrace] = useState<string>(GRACES[0][0]);
  const [rotated, setRotated] = useState<RotatedSecret | null>(null);
  const queries = useQueryClient();
  const stale = () => void queries.invalidateQueries({ queryKey: ['webhook-endpoints'] });
  const rotate = useAction(async () => {
    const path = `webhook-endpoints/${endpoint.id}/rotate-secret`;
    setRotated(await post<RotatedSecret>(path, { grace_seconds: Number(grace) }));
    stale();
  });
  const finish = useAction(async () => {
    await post(`webhook-endpoints/${endpoint.id}/rotate-secret/finish`);
    stale();
    notify('Rotation finished. We sign with the new secret only.');
    onClose();
  });
  const done = () => {
    setRotated(null);
    onClose();
  };
  if (rotated?.secret === null)
    return (
      <Dialog open onClose={done} title="The new signing secret cannot be shown">
        <SecretLost what="signing secret" onDone={done}>
          Rotate again to get a secret, and deploy it immediately.{' '}
          {grace === '0'
            ? 'We no longer sign with the secret that your server has.'
            : 'Rotating again ends the grace period of the secret that your server has.'}
        </SecretLost>
      </Dialog>
    );
  if (rotated)
    return (
      <Dialog open onClose={done} title="The new signing secret" dismissible={false}>
        {rotated.previous_secret_until && (
          <p className="hint">
            We sign with both secrets until <Time at={rotated.previous_secret_until} />.
          </p>
        )}
        <SecretOnce
          what="signing secret"
          secret={rotated.secret}
          hint="Deploy it to your server, then finish the rotation."
          onDone={done}
        />
      </Dialog>
    );
  return (
    <Dialog open onClose={onClose} title="Rotate the signing secret" description={endpoint.url}>
      {endpoint.previous_secret_until && (
        <div className="note wait">
          <p>
            A rotation is in progress. We sign with both secrets until{' '}
            <Time at={endpoint.previous_secret_until} />.
          </p>
          <button
            type="button"
            className="button small"
            disabled={finish.busy}
            onClick={() => void finish.run()}
          >
            Finish rotation
          </button>
          <ErrorNote error={finish.error} />
        </div>
      )}
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault();
          void rotate.run();
        }}
      >
        <Radios
          legend="Keep signing with the old secret for"
          options={GRACES}
          chosen={grace}
          onChange={setGrace}
        />
        <ErrorNote error={rotate.error} />
        <div className="actions">
          <button type="button" className="button" onClick={onClose}>
            Cancel
          </button>
          <Submit busy={rotate.busy}>Rotate signing secret</Submit>
        </div>
      </form>
    </Dialog>
  );
}
