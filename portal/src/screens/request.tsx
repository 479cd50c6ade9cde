import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { ApiError } from '../api/client.ts';
import { oneQuery } from '../api/queries.ts';
import type { Call } from '../api/types.ts';
import { CopyButton, CopyFact } from '../components/copy-button.tsx';
import { Empty, ErrorNote, Loading } from '../components/feedback.tsx';
import { Facts } from '../components/facts.tsx';
import { milliseconds } from '../components/format.ts';
import { Time } from '../components/time.tsx';
import { InItsMode } from '../layout/in-its-mode.tsx';

const requestRoute = getRouteApi('/developers/requests/$requestId');

export function RequestPage() {
  const { requestId } = requestRoute.useParams();
  const query = useQuery(oneQuery<Call>('requests', requestId));
  return (
    <>
      <p className="crumbs">
        <Link to="/developers/requests">Requests</Link>
      </p>
      <h1 className="mono">{requestId}</h1>
      {query.isPending && <Loading />}
      {query.isError &&
        (query.error instanceof ApiError && query.error.status === 404 ? (
          <Empty title="Request not found">
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
    </>
  );
}

function CallFacts({ call }: { call: Call }) {
  return (
    <>
      <CopyButton text={call.request_id} label="Copy request id" />
      <Facts
        entries={[
          ['Call', <code key="call">{`${call.method} ${call.path}`}</code>],
          [
            'Status',
            <span key="status" className={call.status < 400 ? 'code good' : 'code bad'}>
              {call.status}
            </span>,
          ],
          ['Error', call.error_code],
          ['Latency', milliseconds(call.latency_ms)],
          ['Ended', <Time key="time" at={call.created_at} />],
          ['Mode', call.mode],
          ['Key', call.key_id && <CopyFact key="key" text={call.key_id} what="key id" />],
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
    </>
  );
}
