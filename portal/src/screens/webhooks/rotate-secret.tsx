import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { post } from '../../api/client.ts';
import type { Endpoint, RotatedSecret } from '../../api/types.ts';
import { useAction } from '../../api/use-action.ts';
import { Callout } from '../../components/callout.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { ErrorNote } from '../../components/feedback.tsx';
import { Cancel, Radios, Submit } from '../../components/form.tsx';
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
      <SecretLost title="The new signing secret cannot be shown" what="signing secret" onDone={done}>
        Rotate again to get a secret, and deploy it immediately.{' '}
        {grace === '0'
          ? 'We no longer sign with the secret that your server has.'
          : 'Rotating again ends the grace period of the secret that your server has.'}
      </SecretLost>
    );
  if (rotated)
    return (
      <SecretOnce
        title="The new signing secret"
        what="signing secret"
        of={endpoint.url}
        secret={rotated.secret}
        hint={
          <>
            Deploy it to your server, then finish the rotation.
            {rotated.previous_secret_until && (
              <>
                {' '}
                We sign with both secrets until <Time at={rotated.previous_secret_until} />.
              </>
            )}
          </>
        }
        onDone={done}
      />
    );
  return (
    <Dialog
      onClose={onClose}
      title="Rotate the signing secret"
      description={endpoint.url}
      onSubmit={() => void rotate.run()}
      live={endpoint.mode === 'live' && <strong>Live endpoint.</strong>}
      foot={
        <>
          <Cancel onClick={onClose} />
          <Submit busy={rotate.busy}>Rotate signing secret</Submit>
        </>
      }
    >
      {endpoint.previous_secret_until && (
        <Callout
          tone="run"
          title="A rotation is in progress"
          actions={
            <button
              type="button"
              className="button small"
              aria-busy={finish.busy}
              onClick={() => void finish.run()}
            >
              Finish rotation
            </button>
          }
        >
          <p>
            We sign with both secrets until <Time at={endpoint.previous_secret_until} />.
          </p>
          <ErrorNote error={finish.error} />
        </Callout>
      )}
      <Radios
        legend="Keep signing with the old secret for"
        two
        options={GRACES}
        chosen={grace}
        onChange={setGrace}
      />
      <ErrorNote error={rotate.error} />
    </Dialog>
  );
}
