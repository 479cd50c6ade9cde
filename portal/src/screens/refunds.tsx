import { useQueryClient } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useState } from 'react';
import { post } from '../api/client.ts';
import { useSession } from '../api/session.ts';
import type { RefundRequest } from '../api/types.ts';
import { useAction } from '../api/use-action.ts';
import { Dialog } from '../components/dialog.tsx';
import { Badge, Empty, ErrorNote } from '../components/feedback.tsx';
import { UrlFilters } from '../components/filters.tsx';
import { fieldError, SelectField, Submit, TextField } from '../components/form.tsx';
import { money, words } from '../components/format.ts';
import { List } from '../components/list.tsx';
import { Time } from '../components/time.tsx';
import { useMode } from '../layout/use-mode.ts';

const refundsRoute = getRouteApi('/refunds');

const PATH = 'refund-requests';
const STATUSES = ['pending', 'approved', 'rejected', 'canceled'] as const;
const TONES = {
  pending: 'wait',
  approved: 'good',
  rejected: 'bad',
  canceled: 'off',
} as const satisfies Record<RefundRequest['status'], string>;
const REASONS = [
  ['not_working', 'It does not work'],
  ['wrong_device', 'Wrong device'],
  ['duplicate', 'Bought twice'],
  ['other', 'Other'],
] as const satisfies readonly (readonly [RefundRequest['reason'], string])[];

export function Refunds() {
  const mode = useMode();
  const { mode: _mode, ...filters } = refundsRoute.useSearch();
  return (
    <>
      <h1>Refunds</h1>
      <UrlFilters
        choices={[{ name: 'status', label: 'Status', options: STATUSES }]}
        texts={[{ name: 'esim_id', label: 'eSIM id', placeholder: 'esim_…' }]}
      />
      <List<RefundRequest>
        path={PATH}
        mode={mode}
        filters={filters}
        label="Refund requests"
        columns={['Request', 'eSIM', 'Reason', 'Status', 'Amount', 'Created']}
        row={(request) => (
          <tr key={request.id}>
            <td data-column="Request">
              <code>{request.id}</code>
            </td>
            <td data-column="eSIM">
              <Link to="/esims/$esimId" params={{ esimId: request.esim_id }} className="mono">
                {request.esim_id}
              </Link>
            </td>
            <Decision request={request} />
          </tr>
        )}
        empty={
          <Empty title="No refund requests yet">
            <p>
              Request a refund on the page of an <Link to="/esims">eSIM</Link>.
            </p>
          </Empty>
        }
      />
    </>
  );
}

/** The columns that both lists have. */
function Decision({ request }: { request: RefundRequest }) {
  return (
    <>
      <td data-column="Reason">
        {words(request.reason)}
        {request.details && <span className="sub">{request.details}</span>}
      </td>
      <td data-column="Status">
        <Badge tone={TONES[request.status]}>{request.status}</Badge>
        {request.note && <span className="sub">{request.note}</span>}
      </td>
      <td data-column="Amount" className="number">
        {request.amount ? money(request.amount) : '–'}
      </td>
      <td data-column="Created">
        <Time at={request.created_at} short />
      </td>
    </>
  );
}

/** An eSIM's refund requests, on its page. */
export function EsimRefunds({ esim }: { esim: { id: string; mode: 'sandbox' | 'live' } }) {
  const mayWrite = useSession().scopes.includes('refunds:write');
  const [asking, setAsking] = useState(false);
  return (
    <section aria-labelledby="refunds">
      <h2 id="refunds">Refund requests</h2>
      <List<RefundRequest>
        path={PATH}
        mode={esim.mode}
        filters={{ esim_id: esim.id }}
        label="Refund requests"
        columns={['Request', 'Reason', 'Status', 'Amount', 'Created']}
        row={(request) => (
          <tr key={request.id}>
            <td data-column="Request">
              <code>{request.id}</code>
              {mayWrite && request.status === 'pending' && <Withdraw id={request.id} />}
            </td>
            <Decision request={request} />
          </tr>
        )}
        empty={<Empty title="No refund requests" />}
      />
      {mayWrite && (
        <div className="row-actions">
          <button type="button" className="button" onClick={() => setAsking(true)}>
            Request refund
          </button>
        </div>
      )}
      {asking && <RequestDialog esimId={esim.id} onClose={() => setAsking(false)} />}
    </section>
  );
}

function Withdraw({ id }: { id: string }) {
  const queries = useQueryClient();
  const { busy, error, run } = useAction(async () => {
    await post<RefundRequest>(`${PATH}/${id}/cancel`);
    void queries.invalidateQueries({ queryKey: [PATH] });
  });
  return (
    <>
      <button
        type="button"
        className="button quiet"
        disabled={busy}
        aria-label={`Cancel request ${id}`}
        onClick={() => void run()}
      >
        Cancel request
      </button>
      <ErrorNote error={error} />
    </>
  );
}

function RequestDialog({ esimId, onClose }: { esimId: string; onClose: () => void }) {
  const [reason, setReason] = useState<string>('not_working');
  const [details, setDetails] = useState('');
  const queries = useQueryClient();
  const { busy, error, run } = useAction(async () => {
    const text = details.trim();
    await post<RefundRequest>(PATH, { esim_id: esimId, reason, details: text === '' ? null : text });
    void queries.invalidateQueries({ queryKey: [PATH] });
    onClose();
  });
  return (
    <Dialog
      open
      onClose={onClose}
      title="Request refund"
      description="We check the request and answer it here. The eSIM keeps working until then."
    >
      <form
        className="stack"
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          void run();
        }}
      >
        <SelectField label="Reason" value={reason} onChange={setReason} options={REASONS} />
        <TextField
          label="Details (optional)"
          value={details}
          onChange={setDetails}
          error={fieldError(error, 'details')}
        />
        <ErrorNote error={error} />
        <div className="actions">
          <button type="button" className="button" onClick={onClose}>
            Cancel
          </button>
          <Submit busy={busy}>Request refund</Submit>
        </div>
      </form>
    </Dialog>
  );
}
