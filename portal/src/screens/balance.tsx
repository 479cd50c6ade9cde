import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { get, getFile } from '../api/client.ts';
import type { Page, Transaction, Wallet } from '../api/types.ts';
import { useSession } from '../api/session.ts';
import { useAction } from '../api/use-action.ts';
import { orderCommand, readCommand } from '../components/commands.ts';
import { Facts } from '../components/facts.tsx';
import { Empty, ErrorNote, Loading } from '../components/feedback.tsx';
import { count, money } from '../components/format.ts';
import { Icon } from '../components/icon.tsx';
import { List } from '../components/list.tsx';
import { Time } from '../components/time.tsx';
import { Screen } from '../layout/screen.tsx';
import { useMode } from '../layout/use-mode.ts';

/** Balances exist in Live only. */
export function Balance() {
  const mode = useMode();
  const { api_url: apiUrl } = useSession();
  return (
    <Screen
      name="Balance"
      lead={mode === 'live' && 'Your balance pays for Live orders and top-ups. To deposit money, contact us.'}
    >
      {mode === 'live' ? (
        <LiveBalance />
      ) : (
        <Empty title="Sandbox is free" icon="wallet" command={orderCommand(apiUrl, mode)}>
          <p>
            Orders and top-ups in Sandbox cost nothing, so try one. Switch to Live to see your balance and
            statement.
          </p>
        </Empty>
      )}
    </Screen>
  );
}

function LiveBalance() {
  const { api_url: apiUrl } = useSession();
  const query = useQuery({
    queryKey: ['wallet'],
    queryFn: ({ signal }) => get<Page<Wallet>>('wallet', {}, signal),
  });
  return (
    <>
      {query.isError && <ErrorNote error={query.error} retry={() => void query.refetch()} />}
      {query.data?.data.length === 0 && (
        <Empty title="No balance yet" icon="wallet" command={readCommand(apiUrl, 'balance')}>
          <p>Your first deposit creates it. Your programs can read it with a Live key:</p>
        </Empty>
      )}
      <div className="wallets">
        {query.isPending && (
          <div className="card">
            <Loading lines={3} />
          </div>
        )}
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
      <h2>Balance in {wallet.currency}</h2>
      <p className="metric">
        {money(wallet.available)} <span className="delta">available</span>
      </p>
      <Facts
        kind="sums"
        small
        entries={[
          ['Available', money(wallet.available)],
          ['Reserved for open orders', money(wallet.held)],
          ['Total', money(wallet.posted)],
        ]}
      />
    </section>
  );
}

/** Maximum rows of the service's file. */
const MAX_EXPORTED = 10_000;

/** The browser reads the file after the click, so its address must stay valid for a while. */
const KEPT_MS = 60_000;

function save(file: Blob, name: string) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(file);
  link.download = name;
  link.click();
  window.setTimeout(() => URL.revokeObjectURL(link.href), KEPT_MS);
}

function Statement() {
  const { api_url: apiUrl } = useSession();
  const exported = useAction(async () =>
    save(await getFile('wallet/transactions', { format: 'csv' }), 'statement.csv'),
  );
  return (
    <section aria-labelledby="statement">
      <div className="section-head">
        <h2 id="statement">Statement</h2>
        <div className="actions">
          <span className="hint">newest {count(MAX_EXPORTED)} transactions</span>
          <button
            type="button"
            className="button small"
            aria-busy={exported.busy}
            onClick={() => void exported.run()}
          >
            <Icon name="download" />
            Export CSV
          </button>
        </div>
      </div>
      <ErrorNote error={exported.error} />
      <List<Transaction>
        path="wallet/transactions"
        mode={null}
        label="Statement"
        columns={['Type', 'For', ['Amount', 'number'], ['Balance after', 'number'], ['Time', 'number']]}
        row={(transaction) => (
          <tr key={transaction.id}>
            <th scope="row">{TYPES[transaction.type]}</th>
            <td data-label="For">
              <Purpose transaction={transaction} />
            </td>
            <td className="num at-end">{money(transaction.amount)}</td>
            <td data-label="Balance after" className="num">
              {money(transaction.balance_after)}
            </td>
            <td className="num at-time">
              <Time at={transaction.created_at} as="short" />
            </td>
          </tr>
        )}
        empty={
          <Empty
            title="No transactions yet"
            icon="wallet"
            command={readCommand(apiUrl, 'transactions?limit=10')}
          >
            <p>Deposits and charges appear here. Your programs can list them too:</p>
          </Empty>
        }
      />
    </section>
  );
}

const TYPES: Record<Transaction['type'], string> = {
  charge: 'Charge',
  refund: 'Refund',
  deposit: 'Deposit',
  adjustment: 'Adjustment',
};

function Purpose({ transaction }: { transaction: Transaction }) {
  if (transaction.order_id)
    return (
      <Link to="/orders/$orderId" params={{ orderId: transaction.order_id }}>
        Order …{transaction.order_id.slice(-6)}
      </Link>
    );
  if (transaction.topup_id)
    return (
      <Link to="/top-ups/$topupId" params={{ topupId: transaction.topup_id }}>
        Top-up …{transaction.topup_id.slice(-6)}
      </Link>
    );
  return transaction.reference ?? '–';
}
