import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { post } from '../../api/client.ts';
import type { ApiKey, IssuedKey } from '../../api/types.ts';
import { useAction } from '../../api/use-action.ts';
import { Dialog } from '../../components/dialog.tsx';
import { ErrorNote } from '../../components/feedback.tsx';
import { Cancel, Radios, Submit } from '../../components/form.tsx';
import { SecretLost, SecretOnce } from '../../components/secret-once.tsx';
import { MODE_NAMES } from '../../layout/use-mode.ts';

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
  const afterwards =
    grace === '0' ? 'The old key no longer works.' : 'The old key works until its grace period ends.';
  if (issued?.key === null)
    return (
      <SecretLost title="The new key cannot be shown" what="key" onDone={done}>
        Revoke the new key, …{issued.last4}, in the list and create another. {afterwards}
      </SecretLost>
    );
  if (issued)
    return (
      <SecretOnce
        title="Your new key"
        what="key"
        of={`${MODE_NAMES[issued.mode]} key${issued.name ? ` “${issued.name}”` : ''}`}
        secret={issued.key}
        hint={afterwards}
        onDone={done}
      />
    );
  return (
    <Dialog
      onClose={onClose}
      title={`Rotate ${apiKey.name ?? 'the key'} …${apiKey.last4}`}
      description="You get a new key. Deploy it to your programs while the old one still works."
      onSubmit={() => void run()}
      live={apiKey.mode === 'live' && <strong>Live key.</strong>}
      foot={
        <>
          <Cancel onClick={onClose} />
          <Submit busy={busy}>Rotate key</Submit>
        </>
      }
    >
      <Radios legend="Keep the old key valid for" two options={GRACES} chosen={grace} onChange={setGrace} />
      <ErrorNote error={error} />
    </Dialog>
  );
}
