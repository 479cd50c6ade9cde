import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { post } from '../../api/client.ts';
import type { ApiKey, IssuedKey } from '../../api/types.ts';
import { useAction } from '../../api/use-action.ts';
import { Dialog } from '../../components/dialog.tsx';
import { ErrorNote } from '../../components/feedback.tsx';
import { Radios, Submit } from '../../components/form.tsx';
import { SecretLost, SecretOnce } from '../../components/secret-once.tsx';

/** Choices of the grace period of the old key, in seconds. */
export const GRACES = [
  ['86400', '24 hours'],
  ['604800', '7 days'],
  ['3600', '1 hour'],
  ['0', '0 hours (stop now)'],
] as const;

/** Replaces a key by a new one; the old one stays valid for a grace period. */
export function RotateDialog({ apiKey, onClose }: { apiKey: ApiKey; onClose: () => void }) {
  const [grace, setGrace] = useState<string>(GRACES[0][0]);
  const [issued, setIssued] = useState<IssuedKey | null>(null);
  const queries = useQueryClient();
  const { busy, error, run } = useAction(async () => {
    setIssued(await post<IssuedKey>(`api-keys/${apiKey.id}/rotate`, { grace_seconds: Number(grace) }));
    void queries.invalidateQueries({ queryKey: ['api-keys'] });
  });
  const done = () => {
    setIssued(null);
    onClose();
  };
  if (issued?.key === null)
    return (
      <Dialog open onClose={done} title="The new key cannot be shown">
        <SecretLost what="key" onDone={done}>
          Revoke the new key, …{issued.last4}, in the list and create another.{' '}
          {grace === '0' ? 'The old key no longer works.' : 'The old key works until its grace period ends.'}
        </SecretLost>
      </Dialog>
    );
  if (issued)
    return (
      <Dialog open onClose={done} title="Your new key" dismissible={false}>
        <SecretOnce
          what="key"
          secret={issued.key}
          hint={
            grace === '0' ? 'The old key no longer works.' : 'The old key works until its grace period ends.'
          }
          onDone={done}
        />
      </Dialog>
    );
  return (
    <Dialog
      open
      onClose={onClose}
      title={`Rotate ${apiKey.name ?? 'the key'} …${apiKey.last4}`}
      description="You get a new key. Deploy it to your programs while the old one still works."
    >
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault();
          void run();
        }}
      >
        <Radios legend="Keep the old key valid for" options={GRACES} chosen={grace} onChange={setGrace} />
        <ErrorNote error={error} />
        <div className="actions">
          <button type="button" className="button" onClick={onClose}>
            Cancel
          </button>
          <Submit busy={busy}>Rotate key</Submit>
        </div>
      </form>
    </Dialog>
  );
}
