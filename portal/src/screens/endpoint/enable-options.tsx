import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { post } from '../../api/client.ts';
import type { Endpoint } from '../../api/types.ts';
import { useAction } from '../../api/use-action.ts';
import { Dialog } from '../../components/dialog.tsx';
import { ErrorNote } from '../../components/feedback.tsx';
import { countOrMore } from '../../components/format.ts';
import { Cancel, Radios, Submit } from '../../components/form.tsx';

/** Enables an endpoint with a choice about missed deliveries. The switch alone releases held ones. */
export function EnableOptionsDialog({ endpoint, onClose }: { endpoint: Endpoint; onClose: () => void }) {
  const [held, setHeld] = useState('release');
  const [failed, setFailed] = useState('leave');
  const queries = useQueryClient();
  const { busy, error, run } = useAction(async () => {
    await post(`webhook-endpoints/${endpoint.id}/enable`, { held, failed });
    await queries.invalidateQueries({ queryKey: ['webhook-endpoints'] });
    onClose();
  });
  return (
    <Dialog
      onClose={onClose}
      title="Switch on and choose what to send"
      onSubmit={() => void run()}
      live={endpoint.mode === 'live' && <strong>Live endpoint.</strong>}
      foot={
        <>
          <Cancel onClick={onClose} />
          <Submit busy={busy}>Switch on</Submit>
        </>
      }
    >
      <Radios
        legend={`${countOrMore(endpoint.held_count ?? 0)} held`}
        two
        options={[
          ['release', 'Send them, oldest first'],
          ['discard', 'Discard them'],
        ]}
        chosen={held}
        onChange={setHeld}
      />
      <Radios
        legend={`${countOrMore(endpoint.failed_since_last_success ?? 0)} failed since the last success`}
        two
        options={[
          ['leave', 'Leave them'],
          ['resend', 'Send them again'],
        ]}
        chosen={failed}
        onChange={setFailed}
      />
      <ErrorNote error={error} />
    </Dialog>
  );
}
