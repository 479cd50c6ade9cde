import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useEffect, useState } from 'react';
import { post } from '../../api/client.ts';
import { deliveredLaterQuery, deliveryQuery, refreshDeliveryLog } from '../../api/queries.ts';
import { useScope } from '../../api/session.ts';
import type { Attempt, DeliveryWithAttempts } from '../../api/types.ts';
import { useAction } from '../../api/use-action.ts';
import { Callout } from '../../components/callout.tsx';
import { Code } from '../../components/code.tsx';
import { Id } from '../../components/copy-button.tsx';
import { Drawer } from '../../components/drawer.tsx';
import { ErrorNote, Loading } from '../../components/feedback.tsx';
import { capitalized, counted, failureInWords, milliseconds } from '../../components/format.ts';
import { Icon } from '../../components/icon.tsx';
import { Badge, type Tone } from '../../components/state.tsx';
import { Tabs } from '../../components/tabs.tsx';
import { Countdown, Time } from '../../components/time.tsx';
import { notify } from '../../components/toasts.tsx';
import { DeliveryStatus } from './delivery-row.tsx';
import { DeliveryExplanation } from './explanation.tsx';
import { PhaseBar, RunningBar } from './phases.tsx';

type DrawerProps = {
  id: string;
  endpointId: string;
  /** The neighbors in the list, if they are loaded. */
  newer: string | undefined;
  older: string | undefined;
  onOpen: (id: string) => void;
  onClose: () => void;
};

/**
 * One delivery with all requests and responses. The address may name a delivery of another endpoint, even in the other
 * mode.
 */
export function DeliveryDrawer({ id, endpointId, newer, older, onOpen, onClose }: DrawerProps) {
  const query = useQuery(deliveryQuery(id));
  return (
    <Drawer
      onClose={onClose}
      title={`Delivery ${id}`}
      head={
        <>
          <p className="reveals">
            <Id text={id} what="delivery id" />
          </p>
          <Step label="Newer delivery" letter="k" icon="up" to={newer} onOpen={onOpen} />
          <Step label="Older delivery" letter="j" icon="down" to={older} onOpen={onOpen} />
        </>
      }
    >
      {query.isPending && <Loading />}
      {query.isError && <ErrorNote error={query.error} retry={() => void query.refetch()} />}
      {query.data &&
        (query.data.endpoint_id === endpointId ? (
          <Content key={id} delivery={query.data} />
        ) : (
          <Elsewhere delivery={query.data} />
        ))}
    </Drawer>
  );
}

type StepProps = {
  label: string;
  letter: string;
  icon: 'up' | 'down';
  to: string | undefined;
  onOpen: (id: string) => void;
};

/** Goes to a neighbor, with a button or a letter. */
function Step({ label, letter, icon, to, onOpen }: StepProps) {
  useEffect(() => {
    const listen = ({ key, target, ctrlKey, metaKey, altKey }: KeyboardEvent) => {
      const isTyping = target instanceof Element && target.closest('input, select, textarea') !== null;
      if (to !== undefined && key.toLowerCase() === letter && !isTyping && !ctrlKey && !metaKey && !altKey)
        onOpen(to);
    };
    window.addEventListener('keydown', listen);
    return () => window.removeEventListener('keydown', listen);
  }, [to, letter, onOpen]);
  return (
    <button
      type="button"
      className="button quiet small icon-only"
      aria-label={label}
      title={`${label} (${letter.toUpperCase()})`}
      aria-disabled={to === undefined}
      onClick={() => to !== undefined && onOpen(to)}
    >
      <Icon name={icon} />
    </button>
  );
}

function Elsewhere({ delivery }: { delivery: DeliveryWithAttempts }) {
  return (
    <Callout
      tone="off"
      title="This delivery belongs to another endpoint"
      actions={
        <Link
          to="/developers/webhooks/$endpointId"
          params={{ endpointId: delivery.endpoint_id }}
          search={{ delivery: delivery.id }}
          className="button small"
        >
          View on that endpoint
        </Link>
      }
    />
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
  const explained =
    delivery.status !== 'delivered' && (delivery.attempt_count > 0 || delivery.status === 'held');
  return (
    <>
      <div>
        <p className="drawer-title">{delivery.event_type}</p>
        <div className="under-title">
          <DeliveryStatus delivery={delivery} />
          {delivery.kind !== 'event' && <span>{capitalized(delivery.kind)}</span>}
          <span>
            Created <Time at={delivery.created_at} as="short" />
          </span>
          {delivery.next_attempt_at && (
            <span>
              Next attempt <Countdown to={delivery.next_attempt_at} />
            </span>
          )}
        </div>
      </div>
      {delivery.status === 'failed' && delivery.event_id && <Resent delivery={delivery} />}
      {explained && <DeliveryExplanation delivery={delivery} />}
      <div className="actions">
        {mayResend && delivery.kind !== 'test' && (
          <button type="button" className="button" aria-busy={resend.busy} onClick={() => void resend.run()}>
            <Icon name="send" />
            Resend
          </button>
        )}
        <Link
          to="/developers/signature-doctor"
          search={(last) => ({ ...(last.mode ? { mode: last.mode } : {}), endpoint: delivery.endpoint_id })}
          className="button"
        >
          <Icon name="doctor" />
          Check a signature
        </Link>
      </div>
      <ErrorNote error={resend.error} />
      <Attempts delivery={delivery} />
      <section aria-labelledby="event">
        <div className="section-head">
          <h3 id="event" className="h-md">
            Event
          </h3>
          {delivery.event_id && (
            <span className="reveals">
              <Id text={delivery.event_id} what="event id" />
            </span>
          )}
        </div>
        {delivery.request_body ? (
          <Code label="Request body" head="application/json" text={pretty(delivery.request_body)} />
        ) : (
          <p className="hint">No body.</p>
        )}
      </section>
    </>
  );
}

/** Says that a later delivery of the same event succeeded, so that nobody repairs what is repaired. */
function Resent({ delivery }: { delivery: DeliveryWithAttempts }) {
  const { data: later } = useQuery(deliveredLaterQuery(delivery));
  if (!later) return null;
  return (
    <Callout
      tone="good"
      title="The event was delivered later"
      actions={
        <Link
          to="."
          search={(last) => ({ ...last, delivery: later.id })}
          resetScroll={false}
          className="button small"
        >
          View delivery
        </Link>
      }
    >
      <p>
        {later.kind === 'replay' ? 'A replay' : 'A resend'} succeeded
        {later.delivered_at && (
          <>
            {' '}
            at <Time at={later.delivered_at} as="short" />
          </>
        )}
        .
      </p>
    </Callout>
  );
}

/** JSON with line breaks; any other text as it is. */
function pretty(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

function Attempts({ delivery }: { delivery: DeliveryWithAttempts }) {
  const attempts = [...delivery.attempts].sort((a, b) => b.number - a.number);
  const [opened, setOpened] = useState<number | null>(null);
  const open = opened ?? attempts[0]?.number;
  return (
    <section aria-labelledby="attempts">
      <div className="section-head">
        <h3 id="attempts" className="h-md">
          Attempts
        </h3>
        <span className="muted small">{counted(attempts.length, 'attempt')} ended</span>
      </div>
      {delivery.current_attempt && <RunningBar attempt={delivery.current_attempt} />}
      {attempts.length === 0 && !delivery.current_attempt && <p className="hint">No attempts yet.</p>}
      <ol className="attempts" reversed>
        {attempts.map((attempt) => (
          <li key={attempt.number}>
            <button
              type="button"
              className="link"
              aria-expanded={attempt.number === open}
              onClick={() => setOpened(attempt.number === open ? 0 : attempt.number)}
            >
              <span className="hidden">Attempt </span>
              {attempt.number}
            </button>
            <Outcome attempt={attempt} />
            <span className="num">{milliseconds(attempt.latency_ms)}</span>
            <Time at={attempt.started_at} as="short" />
            {attempt.number === open && <Details attempt={attempt} />}
          </li>
        ))}
      </ol>
    </section>
  );
}

const TONES: Record<Attempt['outcome'], Tone> = { delivered: 'good', failed: 'bad', interrupted: 'off' };

function Outcome({ attempt }: { attempt: Attempt }) {
  const text = attempt.status_code ?? failureInWords(attempt) ?? attempt.outcome;
  return (
    <span>
      <Badge tone={TONES[attempt.outcome]}>
        {typeof text === 'number' ? text : capitalized(text.replace(/ \(.*\)$/, ''))}
      </Badge>
    </span>
  );
}

function Details({ attempt }: { attempt: Attempt }) {
  const parts = [
    ...(attempt.error && attempt.status_code === null
      ? [['Error', <Code key="error" label="Error" text={attempt.error} />] as const]
      : []),
    [
      'Response',
      <div key="response" className="stack tight">
        <Headers label="Response headers" headers={attempt.response_headers} />
        {attempt.response_body ? (
          <Code label="Response body" text={attempt.response_body} />
        ) : (
          <p className="hint">No body.</p>
        )}
      </div>,
    ] as const,
    ['Request', <Headers key="request" label="Request headers" headers={attempt.request_headers} />] as const,
  ];
  return (
    <div className="open">
      {attempt.phases && <PhaseBar attempt={attempt} phases={attempt.phases} />}
      <Tabs label={`Attempt ${attempt.number}`} tabs={parts} />
    </div>
  );
}

function Headers({ label, headers }: { label: string; headers: Record<string, unknown> | null }) {
  const entries = Object.entries(headers ?? {});
  if (entries.length === 0) return <p className="hint">No headers recorded.</p>;
  return <Code label={label} text={entries.map(([name, value]) => `${name}: ${String(value)}`).join('\n')} />;
}
