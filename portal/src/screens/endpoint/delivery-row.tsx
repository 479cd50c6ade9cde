import { Link } from '@tanstack/react-router';
import type { CurrentAttempt, Delivery } from '../../api/types.ts';
import { capitalized, failureInWords, milliseconds } from '../../components/format.ts';
import { Badge, State } from '../../components/state.tsx';
import { Countdown, inWords, Time, useNow } from '../../components/time.tsx';
import { activityOf } from './phases.tsx';

/** Attempts that the service makes before a delivery has failed. */
const MAX_ATTEMPTS = 6;

/** Distinguishes a failed delivery that is being retried from one that waits for its first attempt. */
export function DeliveryStatus({ delivery }: { delivery: Delivery }) {
  if (delivery.current_attempt) return <Running attempt={delivery.current_attempt} />;
  const retrying = delivery.status === 'pending' && delivery.attempt_count > 0;
  return <State of={retrying ? 'retrying' : delivery.status} />;
}

/** Shows a running attempt, so that a hanging receiver does not look like a waiting delivery. */
function Running({ attempt }: { attempt: CurrentAttempt }) {
  const ms = useNow() - Date.parse(attempt.started_at);
  return (
    <Badge tone="run">
      Attempt {attempt.number} running for {inWords(Math.max(0, ms))}
    </Badge>
  );
}

/** The next attempt of a delivery, and the reason why its last one failed. */
export function DeliveryNote({ delivery }: { delivery: Delivery }) {
  const last = delivery.last_attempt;
  if (delivery.current_attempt)
    return <span className="second">{capitalized(activityOf(delivery.current_attempt))}.</span>;
  const failure = last && delivery.status !== 'delivered' ? failureInWords(last) : null;
  const next = delivery.status === 'pending' && delivery.next_attempt_at;
  const kind = delivery.kind === 'event' ? null : capitalized(delivery.kind);
  if (!failure && !next && !kind) return null;
  return (
    <span className="second">
      {[kind, failure && capitalized(failure)].filter(Boolean).map((part) => `${part}. `)}
      {next && (
        <>
          Attempt {delivery.attempt_count + 1} of {MAX_ATTEMPTS} <Countdown to={next} />.
        </>
      )}
    </span>
  );
}

type Props = { delivery: Delivery; isOpen: boolean };

export function DeliveryRow({ delivery, isOpen }: Props) {
  const last = delivery.last_attempt;
  return (
    <tr aria-selected={isOpen}>
      <td className="at-title">
        <Link
          to="."
          search={(search) => ({ ...search, delivery: delivery.id })}
          resetScroll={false}
          className="row-link"
        >
          <Dotted text={delivery.event_type} />
          <span className="hidden">, {delivery.id}</span>
        </Link>
        <span className="second">{delivery.event_id ? `…${delivery.event_id.slice(-6)}` : 'Test event'}</span>
      </td>
      <td className="at-state">
        <DeliveryStatus delivery={delivery} />
        <DeliveryNote delivery={delivery} />
      </td>
      <td className="at-end">
        <DeliveryCode delivery={delivery} />
      </td>
      <td className="num at-note">{last ? milliseconds(last.latency_ms) : '–'}</td>
      <td className="num at-time">
        <Time at={last?.started_at ?? delivery.created_at} as="short" />
        {delivery.attempt_count > 1 && <span className="second">attempt {delivery.attempt_count}</span>}
      </td>
    </tr>
  );
}

/** Breaks after the dots of an event type. */
function Dotted({ text }: { text: string }) {
  return text.split('.').map((part, at) => [at > 0 && '.', at > 0 && <wbr key={at} />, part]);
}

/** The response of the last attempt. */
export function DeliveryCode({ delivery }: { delivery: Delivery }) {
  const last = delivery.last_attempt;
  if (!last) return <span className="muted">{delivery.current_attempt ? 'Waiting' : 'Not sent yet'}</span>;
  if (last.status_code !== null) return <code>{last.status_code}</code>;
  return <span className="muted">No response</span>;
}
