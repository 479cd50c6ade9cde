import { Switch } from '@base-ui/react/switch';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { post } from '../../api/client.ts';
import { useScope } from '../../api/session.ts';
import type { Endpoint } from '../../api/types.ts';
import { ErrorNote } from '../../components/feedback.tsx';
import { countOrMore } from '../../components/format.ts';
import { notify } from '../../components/toasts.tsx';
import { EndpointStatus } from './endpoint-state.tsx';

/** The status switch, labeled with the endpoint's URL. It moves at once, and moves back if the server refuses. */
export function EndpointSwitch({ endpoint }: { endpoint: Endpoint }) {
  const mayWrite = useScope('webhooks:write');
  const queries = useQueryClient();
  const [wanted, setWanted] = useState<boolean | null>(null);
  const [error, setError] = useState<unknown>(null);
  const on = endpoint.status !== 'disabled';

  const turn = async (next: boolean, canUndo: boolean) => {
    setWanted(next);
    setError(null);
    try {
      await post(`webhook-endpoints/${endpoint.id}/${next ? 'enable' : 'disable'}`);
      await queries.invalidateQueries({ queryKey: ['webhook-endpoints'] });
      const undo = canUndo ? () => void turn(!next, false) : undefined;
      notify(said(endpoint, next), { about: endpoint.id, undo });
    } catch (thrown) {
      setError(thrown);
    } finally {
      setWanted(null);
    }
  };

  return (
    <div className="endpoint-switch">
      <span className="toggle">
        <Switch.Root
          className="switch"
          aria-label={endpoint.url}
          checked={wanted ?? on}
          disabled={!mayWrite}
          onCheckedChange={(next) => void turn(next, true)}
        />
        <EndpointStatus endpoint={endpoint} />
      </span>
      <ErrorNote error={error} />
    </div>
  );
}

function said(endpoint: Endpoint, on: boolean): string {
  if (!on) return 'Switched off. We hold new events until you switch the endpoint on.';
  const held = endpoint.held_count ?? 0;
  return held === 0
    ? 'Switched on.'
    : `Switched on. Sending ${countOrMore(held)} held ${held === 1 ? 'event' : 'events'}.`;
}
