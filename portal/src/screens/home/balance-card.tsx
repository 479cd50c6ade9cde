import type { Overview } from '../../api/types.ts';
import { Chart } from '../../charts/chart.tsx';
import { Line } from '../../charts/line.tsx';
import { Facts } from '../../components/facts.tsx';
import { counted, money } from '../../components/format.ts';
import { day } from '../../components/time.tsx';
import { stepName, type Period } from './periods.ts';

type Wallet = NonNullable<Overview['wallet']>;

const DAY_MS = 86_400_000;
const HEIGHT = 94;
const BASE = 72;
/** The share of the drawing that the past takes when there is a forecast. */
const PAST = 0.6;

/** The balance of the period, and how long it lasts at the current rate. */
export function BalanceCard({ wallet, period }: { wallet: Wallet; period: Period }) {
  const { history, low_balance: low, days_left: daysLeft, available } = wallet;
  const amounts = history.map(({ balance }) => balance.amount);
  const highest = Math.max(1, low?.amount ?? 0, ...amounts);
  const hasForecast = daysLeft !== null && period !== '24h';
  const width = hasForecast ? PAST : 1;
  const last = Math.max(1, amounts.length - 1);
  const points = amounts.map((amount, index) => ({
    x: (index / last) * width,
    y: Math.max(0, amount) / highest,
  }));
  const end = daysLeft === null ? null : new Date(Date.now() + daysLeft * DAY_MS);
  // The axis goes on at the scale of the past; a balance that lasts longer leaves the drawing above zero.
  const ahead = hasForecast ? forecast(daysLeft, amounts, highest) : undefined;
  return (
    <section className="card" aria-labelledby="wallet">
      <h2 id="wallet">Balance</h2>
      <p className="metric">
        {money(available)} <span className="delta">available</span>
      </p>
      <Chart
        what="Balance"
        height={HEIGHT}
        label={`Balance: ${history.map(({ balance }) => money(balance)).join(', ')}.`}
        keys={low ? [{ kind: 'guide', text: `Alert below ${money(low)}` }] : []}
        columns={[period === '24h' ? 'Hour' : 'Day', 'Deposited', 'Balance']}
        rows={history.map(({ at, balance, deposited }) => [
          stepName(at, period),
          money(deposited),
          money(balance),
        ])}
      >
        <Line
          points={points}
          base={BASE}
          height={HEIGHT}
          {...(ahead ? { ahead } : {})}
          {...(low ? { guide: low.amount / highest } : {})}
        />
        <text x="0" y={BASE + 18}>
          {history[0] && stepName(history[0].at, period).replace(/^.*, /, '')}
        </text>
        <text x={`${width * 100}%`} y={BASE + 18} textAnchor={width === 1 ? 'end' : 'middle'}>
          Now
        </text>
      </Chart>
      <Facts
        kind="sums"
        small
        entries={[
          ['Reserved', money(wallet.reserved)],
          ['Average a day', money(wallet.average_per_day)],
          [
            'Days left',
            daysLeft === null || end === null
              ? 'No spending'
              : `${counted(daysLeft, 'day')}, until ${day(end)}`,
          ],
        ]}
      />
    </section>
  );
}

function forecast(daysLeft: number, amounts: readonly number[], highest: number) {
  const room = ((1 - PAST) / PAST) * Math.max(1, amounts.length - 1);
  const shown = Math.min(daysLeft, room);
  const now = Math.max(0, amounts.at(-1) ?? 0);
  return {
    x: PAST + (shown / room) * (1 - PAST),
    y: daysLeft === 0 ? 0 : (now * (1 - shown / daysLeft)) / highest,
  };
}
