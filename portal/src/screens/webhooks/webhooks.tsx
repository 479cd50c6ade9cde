import { useInfiniteQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { every, LIVE_INTERVAL_MS, pages } from '../../api/queries.ts';
import { useScope, useSession } from '../../api/session.ts';
import type { Endpoint } from '../../api/types.ts';
import { Empty, ErrorNote, Loading } from '../../components/feedback.tsx';
import { Icon } from '../../components/icon.tsx';
import { LoadMore, Table, type Column } from '../../components/list.tsx';
import { Url } from '../../components/url.tsx';
import { Screen } from '../../layout/screen.tsx';
import { useMode } from '../../layout/use-mode.ts';
import { EndpointReason } from './endpoint-state.tsx';
import { EndpointSwitch } from './endpoint-switch.tsx';
import { NewEndpointDialog } from './new-endpoint.tsx';
import { RotateSecretDialog } from './rotate-secret.tsx';
import { Sparkline } from './sparkline.tsx';
import { useSendTest } from './send-test.ts';
import { namesOf } from './subscriptions.ts';

const COLUMNS = [
  'Endpoint',
  'State',
  'Last 24 hours',
  ['Actions', 'hidden'],
] as const satisfies readonly Column[];

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
    <Screen
      name="Webhooks"
      lead="We sign each event, send it to your endpoints as it happens, and retry when an endpoint is down."
      actions={
        mayWrite && (
          <button type="button" className="button primary" onClick={() => setCreating(true)}>
            <Icon name="plus" />
            New endpoint
          </button>
        )
      }
    >
      {query.isPending && <Loading />}
      {query.isError && <ErrorNote error={query.error} retry={() => void query.refetch()} />}
      {query.isSuccess && endpoints.length === 0 && (
        <Empty
          title="No endpoints yet"
          icon="webhook"
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
    </Screen>
  );
}

function EndpointRow({ endpoint, onRotate }: { endpoint: Endpoint; onRotate: () => void }) {
  const mayWrite = useScope('webhooks:write');
  const test = useSendTest(endpoint);
  const id = `endpoint-${endpoint.id}`;
  return (
    <tr>
      <th scope="row" className="wide-cell">
        <Link
          to="/developers/webhooks/$endpointId"
          params={{ endpointId: endpoint.id }}
          className="row-link"
          id={id}
        >
          <Url text={endpoint.url} />
        </Link>
        <span className="second">{endpoint.description ?? namesOf(endpoint.event_types)}</span>
      </th>
      <td className="wide-cell">
        <EndpointSwitch endpoint={endpoint} />
        <div className="second">
          <EndpointReason endpoint={endpoint} />
        </div>
      </td>
      <td data-label="Last 24 hours">
        <Sparkline endpointId={endpoint.id} />
      </td>
      <td>
        {mayWrite && (
          <div className="row-actions">
            <button
              type="button"
              className="button small quiet"
              aria-describedby={id}
              aria-busy={test.busy}
              onClick={() => void test.run()}
            >
              Send test event
            </button>
            <button type="button" className="button small quiet" aria-describedby={id} onClick={onRotate}>
              Rotate secret
            </button>
          </div>
        )}
        <ErrorNote error={test.error} />
      </td>
    </tr>
  );
}
