import { useInfiniteQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { every, LIVE_INTERVAL_MS, pages } from '../../api/queries.ts';
import { useScope, useSession } from '../../api/session.ts';
import type { Endpoint } from '../../api/types.ts';
import { Empty, ErrorNote, Loading } from '../../components/feedback.tsx';
import { LoadMore, Table } from '../../components/list.tsx';
import { useMode } from '../../layout/use-mode.ts';
import { EndpointState } from './endpoint-state.tsx';
import { EndpointSwitch } from './endpoint-switch.tsx';
import { NewEndpointDialog } from './new-endpoint.tsx';
import { RotateSecretDialog } from './rotate-secret.tsx';
import { Sparkline } from './sparkline.tsx';
import { useSendTest } from './send-test.ts';
import { namesOf } from './subscriptions.ts';

const COLUMNS = ['Endpoint', 'State', 'Last 24 hours', 'On', 'Actions'];

export function Webhooks() {
  const mode = useMode();
  const mayWrite = useScope('webhooks:write');
  const { api_url: apiUrl } = useSession();
  const [creating, setCreating] = useState(false);
  const [rotating, setRotating] = useState<Endpoint | null>(null);
  const query = useInfiniteQuery({
    ...pages<Endpoint>('webhook-endpoints', mode),
    refetchInterval: every(LIVE_INTERVAL_MS),
  });
  const endpoints = query.data?.pages.flatMap((page) => page.data) ?? [];
  return (
    <>
      <div className="screen-head">
        <h1>Webhooks</h1>
        {mayWrite && (
          <button type="button" className="button primary" onClick={() => setCreating(true)}>
            New endpoint
          </button>
        )}
      </div>
      <p className="lead">
        We sign each event, send it to your endpoints as it happens, and retry when an endpoint is down.
      </p>
      {query.isPending && <Loading />}
      {query.isError && <ErrorNote error={query.error} retry={() => void query.refetch()} />}
      {query.isSuccess && endpoints.length === 0 && (
        <Empty
          title="No endpoints yet"
          command={`curl "${apiUrl ?? 'https://$API_HOST'}/v1/events?limit=10" -H "Authorization: Bearer $ESIM_API_KEY"`}
        >
          <p>
            An endpoint is a public HTTPS URL of yours that accepts POST. Until you create one, your programs
            can read events:
          </p>
        </Empty>
      )}
      {endpoints.length > 0 && (
        <Table label="Webhook endpoints" columns={COLUMNS}>
          {endpoints.map((endpoint) => (
            <EndpointRow key={endpoint.id} endpoint={endpoint} onRotate={() => setRotating(endpoint)} />
          ))}
        </Table>
      )}
      <LoadMore
        more={query.hasNextPage}
        busy={query.isFetchingNextPage}
        load={() => void query.fetchNextPage()}
      />
      {creating && <NewEndpointDialog mode={mode} onClose={() => setCreating(false)} />}
      {rotating && <RotateSecretDialog endpoint={rotating} onClose={() => setRotating(null)} />}
    </>
  );
}

function EndpointRow({ endpoint, onRotate }: { endpoint: Endpoint; onRotate: () => void }) {
  const mayWrite = useScope('webhooks:write');
  const test = useSendTest(endpoint);
  const id = `endpoint-${endpoint.id}`;
  return (
    <tr>
      <td data-column="Endpoint" className="wide-cell">
        <Link
          to="/developers/webhooks/$endpointId"
          params={{ endpointId: endpoint.id }}
          className="endpoint-url"
          id={id}
        >
          {endpoint.url}
        </Link>
        {endpoint.description && <span className="sub">{endpoint.description}</span>}
        <span className="sub">{namesOf(endpoint.event_types)}</span>
      </td>
      <td data-column="State" className="wide-cell">
        <EndpointState endpoint={endpoint} />
      </td>
      <td data-column="Last 24 hours">
        <Sparkline endpointId={endpoint.id} />
      </td>
      <td data-column="On">
        <EndpointSwitch endpoint={endpoint} />
      </td>
      <td data-column="Actions">
        {mayWrite && (
          <div className="row-actions">
            <button
              type="button"
              className="button small"
              aria-describedby={id}
              disabled={test.busy}
              onClick={() => void test.run()}
            >
              Send test event
            </button>
            <button type="button" className="button small" aria-describedby={id} onClick={onRotate}>
              Rotate secret
            </button>
          </div>
        )}
        <ErrorNote error={test.error} />
      </td>
    </tr>
  );
}
