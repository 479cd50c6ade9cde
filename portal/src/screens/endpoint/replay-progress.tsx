import { useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { post } from '../../api/client.ts';
import { refreshDeliveryLog, replayQuery } from '../../api/queries.ts';
import type { Endpoint } from '../../api/types.ts';
import { useAction } from '../../api/use-action.ts';
import { ErrorNote, Loading } from '../../components/feedback.tsx';
import { count } from '../../components/format.ts';

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
      <div className="note wait replay-progress">
        <Loading lines={2} />
      </div>
    );
  if (query.data.endpoint_id !== endpoint.id)
    return (
      <section className="note wait" aria-label="Replay progress">
        <p>The replay in this link belongs to another endpoint.</p>
        <button type="button" className="button small" onClick={hide}>
          Hide
        </button>
      </section>
    );
  const { status, total, delivered, failed, pending, discarded } = query.data;
  const ended = delivered + failed + discarded;
  const under = status === 'running' || pending > 0;
  return (
    <section
      className={`note replay-progress ${under || failed > 0 ? 'wait' : 'good'}`}
      aria-label="Replay progress"
    >
      <p>
        {status === 'canceled' ? 'Replay canceled' : under ? 'Replay in progress' : 'Replay finished'}:{' '}
        {count(delivered)} delivered, {count(failed)} failed, {count(pending)} pending, out of {count(total)}.
      </p>
      <progress aria-label="Replayed deliveries" max={Math.max(1, total)} value={Math.min(ended, total)} />
      <div className="row-actions">
        {status === 'running' && (
          <button
            type="button"
            className="button small"
            disabled={cancel.busy}
            onClick={() => void cancel.run()}
          >
            Cancel replay
          </button>
        )}
        <button type="button" className="button small" onClick={hide}>
          Hide
        </button>
      </div>
      <ErrorNote error={cancel.error} />
    </section>
  );
}
