import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { ApiError } from '../api/client.ts';
import { oneQuery } from '../api/queries.ts';
import type { Call } from '../api/types.ts';
import { Id } from '../components/copy-button.tsx';
import { Empty, ErrorNote, Loading } from '../components/feedback.tsx';
import { Facts } from '../components/facts.tsx';
import { milliseconds } from '../components/format.ts';
import { Time } from '../components/time.tsx';
import { InItsMode, useIsShown } from '../layout/in-its-mode.tsx';
import { Screen } from '../layout/screen.tsx';
import { MODE_NAMES } from '../layout/use-mode.ts';
import { StatusCode } from './requests.tsx';

const requestRoute = getRouteApi('/developers/requests/$requestId');

export function RequestPage() {
  const { requestId } = requestRoute.useParams();
  const query = useQuery(oneQuery<Call>('requests', requestId));
  const call = query.data;
  const isShown = useIsShown(call?.mode);
  return (
    <Screen
      name={`…${requestId.slice(-6)}`}
      parent={{ to: '/developers/requests', name: 'Requests' }}
      title={call && isShown ? <code>{`${call.method} ${call.path}`}</code> : requestId}
      under={
        call &&
        isShown && (
          <>
            <StatusCode status={call.status} />
            <Id text={call.request_id} what="request id" />
            <Time at={call.created_at} />
          </>
        )
      }
    >
      {query.isPending && <Loading />}
      {query.isError &&
        (query.error instanceof ApiError && query.error.status === 404 ? (
          <Empty title="Request not found" icon="search">
            <p>
              We keep requests for 30 days. Every response has its request id in the X-Request-Id header and
              in the body.
            </p>
          </Empty>
        ) : (
          <ErrorNote error={query.error} retry={() => void query.refetch()} />
        ))}
      {query.data && (
        <InItsMode what="request" mode={query.data.mode}>
          <CallFacts call={query.data} />
        </InItsMode>
      )}
    </Screen>
  );
}

function CallFacts({ call }: { call: Call }) {
  return (
    <section className="card" aria-label="Facts">
      <Facts
        kind="wide"
        entries={[
          [
            'Error',
            call.error_code && (
              <a key="error" href={`/docs/errors#${call.error_code}`} target="_blank" rel="noreferrer">
                <code>{call.error_code}</code>
                <span className="hidden"> (new tab)</span>
              </a>
            ),
          ],
          ['Latency', milliseconds(call.latency_ms)],
          ['Mode', call.mode && MODE_NAMES[call.mode]],
          ['Key', call.key_id && <Id key="key" text={call.key_id} what="key id" />],
          ['From', call.remote_address],
          ['Your X-Request-Id', call.client_request_id],
          [
            'Replayed the response to',
            call.replay_of && (
              <Link key="first" to="/developers/requests/$requestId" params={{ requestId: call.replay_of }}>
                {call.replay_of}
              </Link>
            ),
          ],
        ]}
      />
    </section>
  );
}
