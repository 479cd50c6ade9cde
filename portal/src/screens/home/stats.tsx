import type { ReactNode } from 'react';
import type { Money, Overview } from '../../api/types.ts';
import { Bars, type Bar } from '../../charts/bars.tsx';
import { BASE, Chart, percentOf, TOP } from '../../charts/chart.tsx';
import { Line, type Point } from '../../charts/line.tsx';
import { count, counted, money, percent, shortMoney } from '../../components/format.ts';
import { Icon } from '../../components/icon.tsx';
import { NAMES, stepLabel, stepName, type Period } from './periods.ts';

/** The cards of the period: each one question, one number and the change to the period before. */
export function Stats({ overview }: { overview: Overview }) {
  const { orders, cost, failed_orders: failed, deliveries, window } = overview;
  return (
    <div className="stats">
      {orders && <Orders series={orders} period={window} />}
      {cost && <Cost series={cost} period={window} />}
      {failed && <Failed series={failed} orders={orders} period={window} />}
      {deliveries && <Deliveries series={deliveries} period={window} />}
    </div>
  );
}

type CardProps = { id: string; title: string; metric: ReactNode; delta: ReactNode; children: ReactNode };

function Card({ id, title, metric, delta, children }: CardProps) {
  return (
    <section className="card" aria-labelledby={id}>
      <h2 id={id}>{title}</h2>
      <p className="metric">
        {metric} <span className="delta">{delta}</span>
      </p>
      {children}
    </section>
  );
}

type DeltaProps = {
  now: number;
  before: number;
  /** The value of the period before in words. */
  text: string;
  /** Which direction is good; neither for costs. */
  good?: 'up' | 'down';
};

function Delta({ now, before, text, good }: DeltaProps) {
  if (before === 0) return now === 0 ? 'none before either' : 'none in the period before';
  const change = (now - before) / before;
  if (change === 0) return `the same as before`;
  const up = change > 0;
  const isGood = good !== undefined && up === (good === 'up');
  return (
    <>
      <strong data-tone={isGood ? 'good' : undefined}>
        <Icon name={up ? 'rise' : 'fall'} />
        <span className="hidden">{up ? 'up' : 'down'}</span>
        {percent(Math.abs(change))}
      </strong>
      from {text}
    </>
  );
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

type Counts = NonNullable<Overview['orders']>;

function countBars(series: Counts, period: Period, paired: boolean): Bar[] {
  const last = series.current.length - 1;
  return series.current.map(({ at, count: value }, index) => {
    const before = series.previous[index]?.count ?? 0;
    return {
      name: stepName(at, period),
      label: stepLabel(at, period, index, last),
      value,
      text: count(value),
      ...(paired ? { before: { value: before, text: count(before) } } : {}),
    };
  });
}

const countRows = (series: Counts, period: Period) =>
  series.current.map(({ at, count: value }, index) => [
    stepName(at, period),
    count(series.previous[index]?.count ?? 0),
    count(value),
  ]);

const stepWord = (period: Period): string => (period === '24h' ? 'hour' : 'day');
const columnsOf = (period: Period, what: string) => [
  period === '24h' ? 'Hour' : 'Day',
  NAMES[period][1],
  what,
];

function Orders({ series, period }: { series: Counts; period: Period }) {
  const [now, before] = [sum(series.current.map((s) => s.count)), sum(series.previous.map((s) => s.count))];
  return (
    <Card
      id="orders"
      title="Orders"
      metric={count(now)}
      delta={<Delta now={now} before={before} text={count(before)} good="up" />}
    >
      <Chart
        what="Orders"
        label={`Orders each ${stepWord(period)}: ${series.current.map((s) => count(s.count)).join(', ')}.`}
        keys={[
          { kind: 'now', text: NAMES[period][0] },
          { kind: 'before', text: NAMES[period][1] },
        ]}
        columns={columnsOf(period, 'Orders')}
        rows={countRows(series, period)}
      >
        <Bars bars={countBars(series, period, true)} />
      </Chart>
    </Card>
  );
}

function Cost({ series, period }: { series: NonNullable<Overview['cost']>; period: Period }) {
  const currency = series.current[0]?.cost.currency ?? 'USD';
  const amount = (steps: typeof series.current): Money => ({
    amount: sum(steps.map(({ cost }) => cost.amount)),
    currency,
  });
  const [now, before] = [amount(series.current), amount(series.previous)];
  const zero = { amount: 0, currency };
  const last = series.current.length - 1;
  const beforeOf = (index: number) => series.previous[index]?.cost ?? zero;
  return (
    <Card
      id="cost"
      title="Cost"
      metric={money(now)}
      delta={<Delta now={now.amount} before={before.amount} text={money(before)} />}
    >
      <Chart
        what="Cost"
        label={`Cost each ${stepWord(period)}: ${series.current.map(({ cost }) => money(cost)).join(', ')}.`}
        keys={[
          { kind: 'now', text: NAMES[period][0] },
          { kind: 'before', text: NAMES[period][1] },
        ]}
        columns={columnsOf(period, 'Cost')}
        rows={series.current.map(({ at, cost }, index) => [
          stepName(at, period),
          money(beforeOf(index)),
          money(cost),
        ])}
      >
        <Bars
          bars={series.current.map(({ at, cost }, index) => ({
            name: stepName(at, period),
            label: stepLabel(at, period, index, last),
            value: cost.amount,
            text: shortMoney(cost),
            before: { value: beforeOf(index).amount, text: money(beforeOf(index)) },
          }))}
        />
      </Chart>
    </Card>
  );
}

type FailedProps = { series: Counts; orders: Counts | null; period: Period };

function Failed({ series, orders, period }: FailedProps) {
  const [now, before] = [sum(series.current.map((s) => s.count)), sum(series.previous.map((s) => s.count))];
  const all = sum((orders?.current ?? []).map((s) => s.count));
  return (
    <Card
      id="failed"
      title="Failed orders"
      metric={count(now)}
      delta={
        <>
          <Delta now={now} before={before} text={count(before)} good="down" />
          {all > 0 && now > 0 && `, ${percent(now / all)} of all orders`}
        </>
      }
    >
      <Chart
        what="Failed orders"
        label={`Failed orders each ${stepWord(period)}: ${series.current.map((s) => count(s.count)).join(', ')}.`}
        keys={[{ kind: 'trouble', text: 'Failed, refunded in full' }]}
        columns={columnsOf(period, 'Failed')}
        rows={countRows(series, period)}
      >
        <Bars bars={countBars(series, period, false)} allTrouble />
      </Chart>
    </Card>
  );
}

type DeliveryCounts = NonNullable<Overview['deliveries']>['current'][number];

const shareOf = ({ delivered, failed }: DeliveryCounts): number | null =>
  delivered + failed === 0 ? null : delivered / (delivered + failed);

function Deliveries({ series, period }: { series: NonNullable<Overview['deliveries']>; period: Period }) {
  const { current } = series;
  const delivered = sum(current.map((s) => s.delivered));
  const ended = delivered + sum(current.map((s) => s.failed));
  const slot = 1 / current.length;
  // The shares are close to each other and to 100 %, so the drawing begins at the lowest one.
  const shares = current.map(shareOf);
  const lowest = Math.min(1, ...shares.filter((share) => share !== null));
  const floor = Math.max(0, lowest - (1 - lowest) * 0.6 - 0.02);
  const heightOf = (share: number) => (share - floor) / (1 - floor);
  const points = shares.flatMap((share, index): Point[] =>
    share === null ? [] : [{ x: (index + 0.5) * slot, y: heightOf(share) }],
  );
  const last = current.length - 1;
  return (
    <Card
      id="deliveries"
      title="Webhook deliveries"
      metric={ended === 0 ? '–' : percent(delivered / ended)}
      delta={
        ended === 0
          ? 'none in this period'
          : `${count(delivered)} of ${counted(ended, 'finished delivery', 'finished deliveries')}`
      }
    >
      <Chart
        what="Deliveries"
        label={`Share of deliveries that succeeded each ${stepWord(period)}: ${shares
          .map((share) => (share === null ? 'none' : percent(share)))
          .join(', ')}.`}
        keys={[{ kind: 'now', text: 'Delivered within 6 attempts' }]}
        columns={[period === '24h' ? 'Hour' : 'Day', 'Delivered', 'Failed']}
        rows={current.map((step) => [stepName(step.at, period), count(step.delivered), count(step.failed)])}
      >
        <Line points={points} />
        {current.map((step, index) => {
          const share = shares[index] ?? null;
          const isMarked = share !== null && share === lowest && share < 1;
          const label = stepLabel(step.at, period, index, last);
          const many = period !== '7d';
          return (
            <g key={step.at} className="slot">
              <title>{`${stepName(step.at, period)}: ${share === null ? 'none' : percent(share)}`}</title>
              <rect
                className="hit"
                x={percentOf(index * slot)}
                y="0"
                width={percentOf(slot)}
                height={BASE}
                rx="4"
              />
              {isMarked && (
                <text
                  className="value"
                  x={percentOf((index + 0.5) * slot)}
                  y={BASE - heightOf(share) * (BASE - TOP) + 16}
                  textAnchor={index > last - 2 ? 'end' : index < 2 ? 'start' : 'middle'}
                >
                  {percent(share)}
                </text>
              )}
              {label !== '' && (
                <text
                  x={percentOf(many ? (index === last ? 1 : index * slot) : (index + 0.5) * slot)}
                  y={BASE + 18}
                  textAnchor={many ? (index === last ? 'end' : 'start') : 'middle'}
                >
                  {label}
                </text>
              )}
            </g>
          );
        })}
      </Chart>
    </Card>
  );
}
