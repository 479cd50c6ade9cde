import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { get, pathWithQuery } from '../api/client.ts';
import type { Page, Transaction, Wallet } from '../api/types.ts';
import { Badge, Empty, ErrorNote, Loading } from '../components/feedback.tsx';
import { money } from '../components/format.ts';
import { List } from '../components/list.tsx';
import { Time } from '../components/time.tsx';
import { useMode } from '../layout/use-mode.ts';

export function Balance() {
  const mode = useMode();
  const query = useQuery({
    queryKey: ['wallet', mode],
    queryFn: ({ signal }) => get<Page<Wallet>>('wallet', { mode }, signal),
  });
  return (
    <>
      <h1>Balance</h1>
      {query.isPending && <Loading lines={2} />}
      {query.isError && <ErrorNote error={query.error} retry={() => void query.refetch()} />}
      <div className="wallets">
        {query.data?.data.map((wallet) => (
          <WalletCard key={wallet.currency} wallet={wallet} />
        ))}
      </div>
      <Statement />
    </>
  );
}

function WalletCard({ wallet }: { wallet: Wallet }) {
  return (
    <section className="card" aria-label={`Balance in ${wallet.currency}`}>
      <p className="amount">{money(wallet.available)}</p>
      <p>
        available in {wallet.currency} {wallet.low_since && <Badge tone="bad">low</Badge>}
      </p>
      <p className="sub">
        {money(wallet.posted)} booked, {money(wallet.held)} held for what is under way
      </p>
      {wallet.low_since && (
        <p className="sub">
          Below {money({ amount: wallet.low_balance_amount ?? 0, currency: wallet.currency })} since{' '}
          <Time at={wallet.low_since} />
        </p>
      )}
    </section>
  );
}

function Statement() {
  const mode = useMode();
  return (
    <section aria-labelledby="statement">
      <div className="screen-head">
        <h2 id="statement">Statement</h2>
        <a
          className="button"
          href={pathWithQuery('wallet/transactions', { mode, format: 'csv' })}
          download="statement.csv"
        >
          Export CSV
        </a>
      </div>
      <List<Transaction>
        path="wallet/transactions"
        mode={mode}
        label="Statement"
        columns={['Time', 'Type', 'For', 'Amount', 'Balance after']}
        row={(transaction) => (
          <tr key={transaction.id}>
            <td data-column="Time">
              <Time at={transaction.created_at} />
            </td>
            <td data-column="Type">
              {transaction.type}
              {transaction.note && <span className="sub">{transaction.note}</span>}
            </td>
            <td data-column="For">
              <Purpose transaction={transaction} />
            </td>
            <td data-column="Amount" className="number">
              {money(transaction.amount)}
            </td>
            <td data-column="Balance after" className="number">
              {money(transaction.balance_after)}
            </td>
          </tr>
        )}
        empty={
          <Empty title={mode === 'sandbox' ? 'Sandbox costs nothing' : 'Nothing booked yet'}>
            <p>
              {mode === 'sandbox'
                ? 'Switch to Live to see your balance move.'
                : 'Deposits and charges are listed here.'}
            </p>
          </Empty>
        }
      />
    </section>
  );
}

function Purpose({ transaction }: { transaction: Transaction }) {
  if (transaction.order_id)
    return (
      <Link to="/orders/$orderId" params={{ orderId: transaction.order_id }} className="mono">
        {transaction.order_id}
      </Link>
    );
  return <code>{transaction.topup_id ?? transaction.reference ?? '–'}</code>;
}
