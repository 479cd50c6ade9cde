import { useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { post } from '../../api/client.ts';
import { refreshDeliveryLog, replayQuery } from '../../api/queries.ts';
import type { Endpoint } from '../../api/types.ts';
import { useAction } from '../../api/use-action.ts';
import { Callout } from '../../components/callout.tsx';
import { ErrorNote, Loading } from '../../components/feedback.tsx';
import { count } from '../../components/format.ts';
import { Meter } from '../../components/meter.tsx';

const endpointRoute = getRouteApi('/developers/webhooks/$endpointId');

/** Progress of a replay; a link with its id shows it again. */
export function ReplayProgress({ id, endpoint }: { id: string; endpoint: Endpoint }) {
  const query = useQuery(replayQuery(id));
  const queries = useQueryClient();
  const navigate = endpointRoute.useNavigate();
  const cancel = useAction(async () => {
    await post(`replays/${id}/cancel`);
    await queries.invalidateQueries({ queryKey: ['replays', id] });
    refreshDeliveryLog(queries, endpoint.id);
  });
  const hide = () =>
    void navigate({ search: ({ replay: _hidden, ...others }) => others, resetScroll: false });
  if (query.isError) return <ErrorNote error={query.error} />;
  if (!query.data)
    return (
      <Callout tone="run" className="replay-progress">
        <Loading lines={2} />
      </Callout>
    );
  const hideButton = (
    <button type="button" className="button small" onClick={hide}>
      Hide
    </button>
  );
  if (query.data.endpoint_id !== endpoint.id)
    return (
      <Callout tone="warn" label="Replay progress" actions={hideButton}>
        <p>The replay in this link belongs to another endpoint.</p>
      </Callout>
    );
  const { status, total, delivered, failed, pending, discarded } = query.data;
  const ended = delivered + failed + discarded;
  const under = status === 'running' || pending > 0;
  return (
    <Callout
      tone={under ? 'run' : failed > 0 ? 'warn' : 'good'}
      className="replay-progress"
      label="Replay progress"
      title={status === 'canceled' ? 'Replay canceled' : under ? 'Replay in progress' : 'Replay finished'}
      actions={
        <>
          {status === 'running' && (
            <button
              type="button"
              className="button small"
              aria-busy={cancel.busy}
              onClick={() => void cancel.run()}
            >
              Cancel replay
            </button>
          )}
          {hideButton}
        </>
      }
    >
      <p>
        {count(delivered)} delivered, {count(failed)} failed, {count(pending)} pending, out of {count(total)}.
      </p>
      <Meter
        share={total === 0 ? 1 : Math.min(ended, total) / total}
        label={`${count(ended)} of ${count(total)} deliveries ended`}
      />
      <ErrorNote error={cancel.error} />
    </Callout>
  );
}
