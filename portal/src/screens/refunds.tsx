import { useQueryClient } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useState } from 'react';
import { post } from '../api/client.ts';
import { useScope } from '../api/session.ts';
import type { Esim, Mode, RefundRequest } from '../api/types.ts';
import { useAction } from '../api/use-action.ts';
import { Dialog } from '../components/dialog.tsx';
import { Empty, ErrorNote } from '../components/feedback.tsx';
import { UrlFilters } from '../components/filters.tsx';
import { Cancel, fieldError, SelectField, Submit, TextField } from '../components/form.tsx';
import { capitalized, money, words } from '../components/format.ts';
import { List } from '../components/list.tsx';
import { State } from '../components/state.tsx';
import { Time } from '../components/time.tsx';
import { notify } from '../components/toasts.tsx';
import { Screen } from '../layout/screen.tsx';
import { useMode } from '../layout/use-mode.ts';

const refundsRoute = getRouteApi('/refunds');

const PATH = 'refund-requests';
const STATUSES = ['pending', 'approved', 'rejected', 'canceled'] as const;
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
    <Screen name="Refunds" lead="Your refund requests and our decisions. To request one, open the eSIM.">
      <UrlFilters
        choices={[{ name: 'status', label: 'Status', options: STATUSES }]}
        texts={[{ name: 'esim_id', label: 'eSIM id', placeholder: 'esim_…' }]}
      />
      <List<RefundRequest>
        path={PATH}
        mode={mode}
        filters={filters}
        label="Refund requests"
        columns={['Reason', 'eSIM', 'Status', ['Amount', 'number'], ['Time', 'number']]}
        row={(request) => (
          <tr key={request.id}>
            <Reason request={request} />
            <td data-label="eSIM">
              <Link to="/esims/$esimId" params={{ esimId: request.esim_id }}>
                eSIM …{request.esim_id.slice(-6)}
              </Link>
            </td>
            <Decision request={request} />
          </tr>
        )}
        empty={
          <Empty title="No refund requests yet" icon="coin">
            <p>
              Request a refund on the page of an <Link to="/esims">eSIM</Link>.
            </p>
          </Empty>
        }
      />
    </Screen>
  );
}

const reasonInWords = (reason: RefundRequest['reason']): string =>
  REASONS.find(([code]) => code === reason)?.[1] ?? capitalized(words(reason));

function Reason({ request }: { request: RefundRequest }) {
  return (
    <th scope="row">
      {reasonInWords(request.reason)}
      {request.details && <span className="second">{request.details}</span>}
    </th>
  );
}

/** The columns that both lists have. */
function Decision({ request }: { request: RefundRequest }) {
  return (
    <>
      <td className="at-state">
        <State of={request.status} />
        {request.note && <span className="second">{request.note}</span>}
      </td>
      <td className="num at-end">{request.amount ? money(request.amount) : '–'}</td>
      <td className="num at-time">
        <Time at={request.created_at} as="short" />
      </td>
    </>
  );
}

/** An eSIM's refund requests, on its page. */
export function EsimRefunds({ esim }: { esim: { id: string; mode: Mode } }) {
  const mayWrite = useScope('refunds:write');
  return (
    <section aria-labelledby="refunds">
      <div className="section-head">
        <h2 id="refunds">Refund requests</h2>
      </div>
      <List<RefundRequest>
        path={PATH}
        mode={esim.mode}
        filters={{ esim_id: esim.id }}
        isFiltered={false}
        label="Refund requests"
        columns={['Reason', 'Status', ['Amount', 'number'], ['Time', 'number'], ['Actions', 'hidden']]}
        row={(request) => (
          <tr key={request.id}>
            <Reason request={request} />
            <Decision request={request} />
            <td>{mayWrite && request.status === 'pending' && <Withdraw id={request.id} />}</td>
          </tr>
        )}
        empty={<p className="muted">None. {mayWrite && 'Request one in the “…” menu at the top.'}</p>}
      />
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
        className="button small quiet"
        aria-busy={busy}
        aria-label={`Cancel request ${id}`}
        onClick={() => void run()}
      >
        Cancel request
      </button>
      <ErrorNote error={error} />
    </>
  );
}

/** Asks for the reason of a refund request. */
export function RefundDialog({ esim, onClose }: { esim: Esim; onClose: () => void }) {
  const [reason, setReason] = useState<string>('not_working');
  const [details, setDetails] = useState('');
  const queries = useQueryClient();
  const { busy, error, run } = useAction(async () => {
    const text = details.trim();
    await post<RefundRequest>(PATH, { esim_id: esim.id, reason, details: text === '' ? null : text });
    void queries.invalidateQueries({ queryKey: [PATH] });
    notify('Refund requested. We will decide and show the result here.');
    onClose();
  });
  return (
    <Dialog
      onClose={onClose}
      title="Request refund"
      description={
        esim.actions.includes('cancel')
          ? 'This eSIM is unused. If its whole order is, cancel the order instead: that refund takes seconds. Otherwise, we check the request and answer it here.'
          : 'We check the request and answer it here. The eSIM keeps working until then.'
      }
      onSubmit={() => void run()}
      foot={
        <>
          <Cancel onClick={onClose} />
          <Submit busy={busy}>Request refund</Submit>
        </>
      }
    >
      <SelectField label="Reason" value={reason} onChange={setReason} options={REASONS} />
      <TextField
        label="Details"
        optional
        value={details}
        onChange={setDetails}
        error={fieldError(error, 'details')}
      />
      <ErrorNote error={error} />
    </Dialog>
  );
}
