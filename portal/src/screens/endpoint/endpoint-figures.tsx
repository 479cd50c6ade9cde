import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { statsQuery } from '../../api/queries.ts';
import type { Endpoint, EndpointStats } from '../../api/types.ts';
import { Bars, type Bar } from '../../charts/bars.tsx';
import { Chart } from '../../charts/chart.tsx';
import { count, counted, milliseconds } from '../../components/format.ts';
import { Ago, Time } from '../../components/time.tsx';

type Bucket = EndpointStats['buckets'][number];

const HOUR = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });
/** One label for this many hours. */
const LABEL_EVERY = 6;

type Hour = { at: string; succeeded: number; failed: number };

/** The quarters of an hour, summed up. */
function hoursOf(buckets: readonly Bucket[]): Hour[] {
  const hours: Hour[] = [];
  for (const { at, delivered, failed } of buckets) {
    const hour = `${at.slice(0, 13)}:00:00.000Z`;
    const last = hours.at(-1);
    if (last?.at === hour) {
      last.succeeded += delivered;
      last.failed += failed;
    } else hours.push({ at: hour, succeeded: delivered, failed });
  }
  return hours;
}

/** The highest of the buckets: percentiles of several buckets cannot be added. */
const highest = (buckets: readonly Bucket[], field: 'p50_ms' | 'p95_ms'): number | null =>
  buckets.reduce<number | null>(
    (most, { [field]: ms }) => (ms === null ? most : Math.max(most ?? 0, ms)),
    null,
  );

function Figure({ name, value, note }: { name: string; value: ReactNode; note: ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        {value}
        <small>{note}</small>
      </dd>
    </div>
  );
}

/** The last 24 hours of an endpoint: figures, and attempts an hour. Attempts and deliveries are counted apart. */
export function EndpointFigures({ endpoint }: { endpoint: Endpoint }) {
  const { data: buckets } = useQuery(statsQuery(endpoint.id));
  const hours = hoursOf(buckets ?? []);
  const sums = hours.reduce(
    (sum, { succeeded, failed }) => ({ succeeded: sum.succeeded + succeeded, failed: sum.failed + failed }),
    { succeeded: 0, failed: 0 },
  );
  const attempts = endpoint.attempts_24h ?? sums;
  const deliveries = endpoint.deliveries_24h;
  const [p50, p95] = [highest(buckets ?? [], 'p50_ms'), highest(buckets ?? [], 'p95_ms')];
  return (
    <>
      <dl className="figures">
        <Figure
          name="Last success"
          value={endpoint.last_success_at ? <Ago at={endpoint.last_success_at} /> : 'Never'}
          note={endpoint.last_success_at && <Time at={endpoint.last_success_at} as="short" />}
        />
        {deliveries ? (
          <Figure
            name="Deliveries, 24 h"
            value={`${count(deliveries.delivered)} delivered`}
            note={`${count(deliveries.pending)} waiting, ${count(deliveries.failed)} failed`}
          />
        ) : (
          <Figure
            name="Deliveries"
            value={`${count(endpoint.pending_count)} waiting`}
            note={`${count(endpoint.held_count)} held`}
          />
        )}
        <Figure
          name="Attempts, 24 h"
          value={count(attempts.succeeded + attempts.failed)}
          note={`${count(attempts.failed)} failed`}
        />
        <Figure
          name="Response time"
          value={p50 === null ? '–' : milliseconds(p50)}
          note={p95 === null ? 'not measured yet' : `95th percentile: ${milliseconds(p95)}`}
        />
      </dl>
      <section className="card" aria-labelledby="per-hour">
        <h2 id="per-hour">Attempts an hour</h2>
        <Chart
          what="Attempts an hour"
          label={`Attempts of the last 24 hours: ${counted(sums.succeeded, 'attempt')} succeeded, ${count(sums.failed)} failed.`}
          keys={[
            { kind: 'now', text: 'Succeeded' },
            { kind: 'trouble', text: 'Failed' },
          ]}
          columns={['Hour', 'Succeeded', 'Failed']}
          rows={hours.map(({ at, succeeded, failed }) => [
            `${HOUR.format(new Date(at))}`,
            count(succeeded),
            count(failed),
          ])}
        >
          <Bars bars={hours.map((hour, at) => barOf(hour, at, hours.length - 1))} />
        </Chart>
      </section>
    </>
  );
}

function barOf({ at, succeeded, failed }: Hour, index: number, last: number): Bar {
  const name = HOUR.format(new Date(at));
  return {
    name,
    label: index === last ? 'Now' : index % LABEL_EVERY === 0 && index < last - 2 ? name : '',
    value: succeeded,
    text: failed > succeeded ? `${count(failed)} failed` : count(succeeded),
    trouble: failed,
  };
}
