import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { useSession } from '../api/session.ts';
import type { Call } from '../api/types.ts';
import { Id } from '../components/copy-button.tsx';
import { Empty } from '../components/feedback.tsx';
import { UrlFilters } from '../components/filters.tsx';
import { PickText } from '../components/form.tsx';
import { counted, milliseconds } from '../components/format.ts';
import { List } from '../components/list.tsx';
import { Badge } from '../components/state.tsx';
import { Time } from '../components/time.tsx';
import { Screen } from '../layout/screen.tsx';
import { useMode } from '../layout/use-mode.ts';

const requestsRoute = getRouteApi('/developers/requests');

/** Error codes that programs can receive, most searched-for first. */
const ERROR_CODES = [
  'validation_failed',
  'not_found',
  'unauthorized',
  'rate_limited',
  'insufficient_balance',
  'spend_limit_reached',
  'package_unavailable',
  'price_changed',
  'reference_taken',
  'topup_not_supported',
  'esim_not_ready',
  'esim_expired',
  'order_not_cancelable',
  'not_supported',
  'idempotency_key_required',
  'idempotency_key_reused',
  'idempotency_in_progress',
  'invalid_json',
  'invalid_cursor',
  'bad_request',
  'sandbox_only',
  'partner_suspended',
  'ip_not_allowed',
  'forbidden',
  'method_not_allowed',
  'conflict',
  'limit_reached',
  'request_timeout',
  'payload_too_large',
  'uri_too_long',
  'unsupported_media_type',
  'expectation_failed',
  'headers_too_large',
  'internal_error',
  'service_unavailable',
] as const satisfies readonly NonNullable<Call['error_code']>[];

export function Requests() {
  const mode = useMode();
  const { mode: _mode, ...filters } = requestsRoute.useSearch();
  const { api_url: apiUrl } = useSession();
  return (
    <Screen
      name="Requests"
      lead={
        <>
          Every API call that your programs made in the last 30 days. Each response has its request id in{' '}
          <span className="nowrap">X-Request-Id</span>.
        </>
      }
      actions={<LookUp />}
    >
      <UrlFilters
        times
        choices={[
          {
            name: 'method',
            label: 'Method',
            options: ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'],
            nameOf: (method) => method,
          },
          { name: 'error_code', label: 'Error code', options: ERROR_CODES, nameOf: (code) => code },
        ]}
        texts={[
          { name: 'status', label: 'Status', placeholder: '402', pattern: /^[1-5]\d\d$/ },
          { name: 'key_id', label: 'Key id', placeholder: 'key_…', pattern: /^key_[0-9A-Z]{26}$/ },
        ]}
      />
      <List<Call>
        path="requests"
        mode={mode}
        filters={filters}
        label="Requests"
        columns={['Call', 'Request', 'Status', ['Latency', 'number'], ['Time', 'number']]}
        row={(call) => <CallRow key={`${call.request_id}${call.created_at}`} call={call} />}
        empty={
          <Empty
            title="No requests yet"
            icon="requests"
            command={`curl -i ${apiUrl ?? 'https://$API_HOST'}/v1/me -H "Authorization: Bearer $ESIM_API_KEY"`}
          >
            <p>Make one, and it appears here within a second:</p>
          </Empty>
        }
      />
    </Screen>
  );
}

/** Opens a call by its id, regardless of the filters. */
function LookUp() {
  const [id, setId] = useState('');
  const navigate = useNavigate();
  return (
    <form
      className="look-up"
      onSubmit={(event) => {
        event.preventDefault();
        if (id.trim() !== '')
          void navigate({ to: '/developers/requests/$requestId', params: { requestId: id.trim() } });
      }}
    >
      <PickText label="Request id" value={id} onChange={setId} placeholder="req_…" />
      <button type="submit" className="button">
        Look up
      </button>
    </form>
  );
}

/** A status code: the number tells good from bad, the shape of its badge too. */
export function StatusCode({ status }: { status: number }) {
  return (
    <Badge tone={status < 400 ? 'good' : 'bad'}>
      <span className="num">{status}</span>
    </Badge>
  );
}

function CallRow({ call }: { call: Call }) {
  return (
    <tr>
      <th scope="row">
        <Link
          to="/developers/requests/$requestId"
          params={{ requestId: call.request_id }}
          className="row-link"
        >
          <code>
            {call.method} {call.route ?? call.path}
          </code>
          <span className="hidden">, request {call.request_id}</span>
        </Link>
        {call.suppressed !== null && (
          <span className="second">Represents {counted(call.suppressed, 'more call', 'more calls')}</span>
        )}
      </th>
      <td data-label="Request">
        <Id text={call.request_id} what="request id" />
      </td>
      <td className="at-state">
        <StatusCode status={call.status} />
        {call.error_code && <span className="second">{call.error_code}</span>}
      </td>
      <td className="num at-end">{milliseconds(call.latency_ms)}</td>
      <td className="num at-time">
        <Time at={call.created_at} as="short" />
      </td>
    </tr>
  );
}
