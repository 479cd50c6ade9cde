import { useQuery } from '@tanstack/react-query';
import { lastFailedQuery } from '../../api/queries.ts';
import type { Endpoint } from '../../api/types.ts';
import { Badge } from '../../components/feedback.tsx';
import { countOrMore, failureInWords } from '../../components/format.ts';
import { Ago, Countdown, Time } from '../../components/time.tsx';

/** An endpoint's state and its reason, in words. */
export function EndpointState({ endpoint }: { endpoint: Endpoint }) {
  return (
    <div className="endpoint-state">
      <Words endpoint={endpoint} />
      <Backlog endpoint={endpoint} />
      {endpoint.previous_secret_until && (
        <p className="sub">
          We sign with both secrets until <Time at={endpoint.previous_secret_until} />.
        </p>
      )}
    </div>
  );
}

function Words({ endpoint }: { endpoint: Endpoint }) {
  const success = endpoint.last_success_at ? (
    <>
      last success <Ago at={endpoint.last_success_at} />
    </>
  ) : (
    'nothing delivered yet'
  );
  if (endpoint.status === 'enabled')
    return (
      <p>
        <Badge tone="good">Enabled</Badge> {success}
        {endpoint.consecutive_blocks > 0 && `; ${endpoint.consecutive_blocks} of 5 blocks in a row`}.
      </p>
    );
  if (endpoint.status === 'blocked')
    return (
      <p>
        <Badge tone="wait">Blocked</Badge> after a delivery failed six times; sending resumes{' '}
        {endpoint.blocked_until ? <Countdown to={endpoint.blocked_until} /> : 'soon'}. Block{' '}
        {endpoint.consecutive_blocks} of 5: the fifth disables the endpoint
        <LastError endpoint={endpoint} />; {success}.
      </p>
    );
  return (
    <p>
      <Badge tone={endpoint.disabled_reason === 'manual' ? 'off' : 'bad'}>Disabled</Badge>{' '}
      {endpoint.disabled_reason === 'manual' ? 'manually on ' : 'on '}
      <Time at={endpoint.disabled_at ?? endpoint.updated_at} />
      {endpoint.disabled_reason === 'consecutive_blocks' &&
        ` after ${endpoint.consecutive_blocks} blocks in a row`}
      {endpoint.disabled_reason === 'consecutive_blocks' && <LastError endpoint={endpoint} />}; {success}.
    </p>
  );
}

function Backlog({ endpoint }: { endpoint: Endpoint }) {
  const held = endpoint.held_count ?? 0;
  const pending = endpoint.pending_count ?? 0;
  const failed = endpoint.failed_since_last_success ?? 0;
  if (endpoint.status === 'disabled')
    return held === 0 ? (
      <p className="sub">No events are held. Switch the endpoint on to receive new events.</p>
    ) : (
      <p>
        <strong>
          {countOrMore(held)} {held === 1 ? 'event' : 'events'} held.
        </strong>{' '}
        Switch the endpoint on to send {held === 1 ? 'it' : 'them'}, oldest first: slowly at first, then
        faster while your server returns 2xx.
      </p>
    );
  const parts = [
    pending > 0 ? `${countOrMore(pending)} pending` : '',
    failed > 0 ? `${countOrMore(failed)} failed since the last success` : '',
  ].filter(Boolean);
  return parts.length === 0 ? null : <p className="sub">{parts.join('; ')}</p>;
}

/**
 * The error of the latest failed or retried delivery. Fetched only when something is wrong, and again when the endpoint
 * changes.
 */
function LastError({ endpoint }: { endpoint: Endpoint }) {
  const { data, isPending } = useQuery(lastFailedQuery(endpoint.id, endpoint.updated_at));
  // About as wide as the text to come.
  if (isPending) return <>; last error: …………………</>;
  const text = data?.last_attempt ? failureInWords(data.last_attempt) : null;
  return text === null ? null : <>; last error: {text}</>;
}
