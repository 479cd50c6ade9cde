import type { Delivery } from '../../api/types.ts';
import { Badge } from '../../components/feedback.tsx';
import { milliseconds } from '../../components/format.ts';
import { Countdown, Time } from '../../components/time.tsx';

const TONES = { delivered: 'good', failed: 'bad', pending: 'wait', held: 'off', discarded: 'off' } as const;

/** Distinguishes a failed delivery that is being retried from one that waits for its first attempt. */
export function DeliveryStatus({ delivery }: { delivery: Delivery }) {
  if (delivery.current_attempt) return <CurrentAttempt attempt={delivery.current_attempt} />;
  const retrying = delivery.status === 'pending' && delivery.attempt_count > 0;
  return (
    <>
      <Badge tone={TONES[delivery.status]}>{retrying ? 'retrying' : delivery.status}</Badge>
      {retrying && delivery.next_attempt_at && (
        <span className="inline-sub">
          {' '}
          next <Countdown to={delivery.next_attempt_at} />
        </span>
      )}
    </>
  );
}

/** Shows a running attempt, so that a hanging receiver does not look like a waiting delivery. */
function CurrentAttempt({ attempt }: { attempt: NonNullable<Delivery['current_attempt']> }) {
  return (
    <>
      <Badge tone="wait">sending</Badge>
      <span className="inline-sub">
        {' '}
        attempt {attempt.number} since <Time at={attempt.started_at} short />
      </span>
    </>
  );
}

type Props = { delivery: Delivery; onOpen: () => void; onResend: (() => void) | null };

export function DeliveryRow({ delivery, onOpen, onResend }: Props) {
  const last = delivery.last_attempt;
  return (
    <tr className="opens" onClick={onOpen}>
      <td data-column="Event">
        {delivery.event_type}
        <span className="sub">{delivery.event_id ?? 'test event'}</span>
      </td>
      <td data-column="Delivery">
        <button
          type="button"
          className="link mono"
          onClick={(event) => {
            event.stopPropagation();
            onOpen();
          }}
        >
          {delivery.id}
        </button>
        <span className="sub">
          <DeliveryStatus delivery={delivery} />
          {delivery.kind !== 'event' && ` · ${delivery.kind}`}
          {onResend && (
            <button
              type="button"
              className="button small reveal"
              aria-describedby={`delivery-${delivery.id}`}
              onClick={(event) => {
                event.stopPropagation();
                onResend();
              }}
            >
              Resend
            </button>
          )}
        </span>
      </td>
      <td data-column="Status code" id={`delivery-${delivery.id}`}>
        <StatusCode delivery={delivery} />
      </td>
      <td data-column="Latency" className="number">
        {last ? milliseconds(last.latency_ms) : '–'}
      </td>
      <td data-column="Time">
        <Time at={last?.started_at ?? delivery.created_at} short />
        {delivery.attempt_count > 1 && <span className="sub">attempt {delivery.attempt_count}</span>}
      </td>
    </tr>
  );
}

function StatusCode({ delivery }: { delivery: Delivery }) {
  const last = delivery.last_attempt;
  if (!last)
    return (
      <span className="quiet">{delivery.current_attempt ? 'waiting for response' : 'not sent yet'}</span>
    );
  if (last.status_code !== null)
    return (
      <span className={last.outcome === 'delivered' ? 'code good' : 'code bad'}>{last.status_code}</span>
    );
  return <span className="code bad">{last.error ?? 'no response'}</span>;
}
