import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { lastFailedQuery } from '../../api/queries.ts';
import type { Endpoint } from '../../api/types.ts';
import { causeInWords } from '../../components/causes.ts';
import { countOrMore, failureInWords } from '../../components/format.ts';
import { Badge, State } from '../../components/state.tsx';
import { Ago, Countdown, Time } from '../../components/time.tsx';

/** An endpoint's state in a word, and since when it fails. */
export function EndpointStatus({ endpoint }: { endpoint: Endpoint }) {
  const { status, disabled_reason: reason, failing_since: since } = endpoint;
  if (status === 'disabled' && reason !== 'manual') return <Badge tone="bad">Disabled</Badge>;
  return (
    <>
      <State of={status} />
      {status === 'enabled' && since && (
        <Badge tone="warn">
          <span>
            Failing since <Time at={since} as="short" />
          </span>
        </Badge>
      )}
    </>
  );
}

/** The reason of an endpoint's state in sentences, and what waits. */
export function EndpointReason({ endpoint }: { endpoint: Endpoint }) {
  return (
    <div className="reason">
      <p>
        <Reason endpoint={endpoint} />
        <LastSuccess endpoint={endpoint} />
      </p>
      <Backlog endpoint={endpoint} />
      {endpoint.previous_secret_until && (
        <p>
          We sign with both secrets until <Time at={endpoint.previous_secret_until} />.
        </p>
      )}
    </div>
  );
}

function LastSuccess({ endpoint: { last_success_at: at } }: { endpoint: Endpoint }) {
  if (!at) return 'Nothing delivered yet.';
  return (
    <>
      Last success <Ago at={at} />.
    </>
  );
}

function Reason({ endpoint }: { endpoint: Endpoint }): ReactNode {
  const { status, consecutive_blocks: blocks, failing_cause: cause } = endpoint;
  if (status === 'enabled') {
    const why = causeInWords(cause);
    const parts = [why ? `${why}. ` : '', blocks > 0 ? `${blocks} of 5 blocks in a row. ` : ''];
    return parts.join('');
  }
  if (status === 'blocked')
    return (
      <>
        A delivery failed six times. Sending resumes{' '}
        {endpoint.blocked_until ? <Countdown to={endpoint.blocked_until} /> : 'soon'}. Block {blocks} of 5:
        the fifth disables the endpoint. <LastError endpoint={endpoint} />
      </>
    );
  const since = <Time at={endpoint.disabled_at ?? endpoint.updated_at} as="short" />;
  if (endpoint.disabled_reason === 'manual') return <>Switched off at {since}. </>;
  return (
    <>
      Disabled at {since} after {blocks} blocks in a row. <LastError endpoint={endpoint} />
    </>
  );
}

function Backlog({ endpoint }: { endpoint: Endpoint }) {
  const held = endpoint.held_count ?? 0;
  const pending = endpoint.pending_count ?? 0;
  const failed = endpoint.failed_since_last_success ?? 0;
  if (endpoint.status === 'disabled')
    return held === 0 ? (
      <p>No events are held. Switch the endpoint on to receive new events.</p>
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
  return parts.length === 0 ? null : <p>{parts.join(', ')}.</p>;
}

/**
 * The error of the latest failed or retried delivery. Fetched only when something is wrong, and again when the endpoint
 * changes.
 */
function LastError({ endpoint }: { endpoint: Endpoint }) {
  const { data, isPending } = useQuery(lastFailedQuery(endpoint.id, endpoint.updated_at));
  // About as wide as the text to come.
  if (isPending) return <>Last error: …………………. </>;
  const text = data?.last_attempt ? failureInWords(data.last_attempt) : null;
  return text === null ? null : <>Last error: {text}. </>;
}
