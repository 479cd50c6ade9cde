import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { post } from '../../api/client.ts';
import { deliveryQuery, refreshDeliveryLog } from '../../api/queries.ts';
import { useScope } from '../../api/session.ts';
import type { Attempt, DeliveryWithAttempts } from '../../api/types.ts';
import { useAction } from '../../api/use-action.ts';
import { CopyButton } from '../../components/copy-button.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { Badge, ErrorNote, Loading } from '../../components/feedback.tsx';
import { failureInWords, milliseconds } from '../../components/format.ts';
import { Countdown, Time } from '../../components/time.tsx';
import { notify } from '../../components/toasts.tsx';
import { DeliveryStatus } from './delivery-row.tsx';
import { DeliveryExplanation } from './explanation.tsx';
import { PhaseBar } from './phase-bar.tsx';

type DrawerProps = { id: string; endpointId: string; onClose: () => void };

/**
 * One delivery with all requests and responses. The address may name a delivery of another endpoint, even in the other
 * mode.
 */
export function DeliveryDrawer({ id, endpointId, onClose }: DrawerProps) {
  const query = useQuery(deliveryQuery(id));
  return (
    <Dialog open onClose={onClose} title={`Delivery ${id}`} shape="drawer">
      {query.isPending && <Loading />}
      {query.isError && <ErrorNote error={query.error} retry={() => void query.refetch()} />}
      {query.data &&
        (query.data.endpoint_id === endpointId ? (
          <Content delivery={query.data} />
        ) : (
          <Elsewhere delivery={query.data} />
        ))}
    </Dialog>
  );
}

function Elsewhere({ delivery }: { delivery: DeliveryWithAttempts }) {
  return (
    <div className="note wait">
      <p>This delivery belongs to another endpoint.</p>
      <Link
        to="/developers/webhooks/$endpointId"
        params={{ endpointId: delivery.endpoint_id }}
        search={{ delivery: delivery.id }}
        className="button small"
      >
        View on that endpoint
      </Link>
    </div>
  );
}

function Content({ delivery }: { delivery: DeliveryWithAttempts }) {
  const mayResend = useScope('webhooks:replay');
  const queries = useQueryClient();
  const resend = useAction(async () => {
    await post(`deliveries/${delivery.id}/resend`);
    notify('Resent as a new delivery.');
    refreshDeliveryLog(queries, delivery.endpoint_id);
  });
  const attempts = [...delivery.attempts].sort((a, b) => b.number - a.number);
  const explained =
    delivery.status !== 'delivered' && (delivery.attempt_count > 0 || delivery.status === 'held');
  return (
    <div className="stack">
      <dl className="facts">
        <dt>Event</dt>
        <dd>
          {delivery.event_type}{' '}
          {delivery.event_id && (
            <>
              <code>{delivery.event_id}</code> <CopyButton text={delivery.event_id} label="Copy event id" />
            </>
          )}
        </dd>
        <dt>State</dt>
        <dd>
          <DeliveryStatus delivery={delivery} />
        </dd>
        <dt>Created</dt>
        <dd>
          <Time at={delivery.created_at} />
        </dd>
        {delivery.next_attempt_at && (
          <>
            <dt>Next attempt</dt>
            <dd>
              <Countdown to={delivery.next_attempt_at} />
            </dd>
          </>
        )}
      </dl>
      {explained && <DeliveryExplanation delivery={delivery} />}
      <div className="row-actions">
        {mayResend && delivery.kind !== 'test' && (
          <button type="button" className="button" disabled={resend.busy} onClick={() => void resend.run()}>
            Resend
          </button>
        )}
        <Link
          to="/developers/signature-doctor"
          search={(last) => ({ ...(last.mode ? { mode: last.mode } : {}), endpoint: delivery.endpoint_id })}
          className="button"
        >
          Check a signature
        </Link>
      </div>
      <ErrorNote error={resend.error} />
      <h3>Attempts</h3>
      {delivery.current_attempt && (
        <p className="hint">
          Attempt {delivery.current_attempt.number} has been waiting for a response since{' '}
          <Time at={delivery.current_attempt.started_at} short />.
        </p>
      )}
      {attempts.length === 0 && !delivery.current_attempt && <p className="hint">No attempts yet.</p>}
      {attempts.map((attempt, index) => (
        <AttemptDetails
          key={attempt.number}
          attempt={attempt}
          requestBody={delivery.request_body ?? null}
          open={index === 0}
        />
      ))}
    </div>
  );
}

type AttemptProps = { attempt: Attempt; requestBody: string | null; open: boolean };

function AttemptDetails({ attempt, requestBody, open }: AttemptProps) {
  const good = attempt.outcome === 'delivered';
  return (
    <details className="attempt" open={open}>
      <summary>
        <span>Attempt {attempt.number}</span>{' '}
        <Badge tone={good ? 'good' : attempt.outcome === 'failed' ? 'bad' : 'off'}>
          {attempt.status_code ?? attempt.error ?? attempt.outcome}
        </Badge>{' '}
        <span>{milliseconds(attempt.latency_ms)}</span> <Time at={attempt.started_at} short />
      </summary>
      <div className="stack">
        {attempt.error && <p className="note bad">{failureInWords(attempt)}</p>}
        {attempt.phases && <PhaseBar phases={attempt.phases} />}
        <h4>Request</h4>
        <Headers label="Request headers" headers={attempt.request_headers} />
        <Body label="Request body" text={requestBody} />
        <h4>Response</h4>
        <Headers label="Response headers" headers={attempt.response_headers} />
        <Body label="Response body" text={attempt.response_body} />
      </div>
    </details>
  );
}

function Headers({ label, headers }: { label: string; headers: Record<string, unknown> | null }) {
  const entries = Object.entries(headers ?? {});
  if (entries.length === 0) return <p className="hint">No headers recorded.</p>;
  const text = entries.map(([name, value]) => `${name}: ${String(value)}`).join('\n');
  return (
    <pre className="code-block" tabIndex={0} role="region" aria-label={label}>
      {text}
    </pre>
  );
}

function Body({ label, text }: { label: string; text: string | null }) {
  if (text === null || text === '') return <p className="hint">No body.</p>;
  return (
    <div className="command">
      <pre className="code-block" tabIndex={0} role="region" aria-label={label}>
        {text}
      </pre>
      <CopyButton text={text} label={`Copy ${label.toLowerCase()}`} />
    </div>
  );
}
