import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useState } from 'react';
import { send } from '../api/client.ts';
import { oneQuery } from '../api/queries.ts';
import type { Esim, EsimPlan, InstallData } from '../api/types.ts';
import { useAction } from '../api/use-action.ts';
import { CopyButton, CopyFact } from '../components/copy-button.tsx';
import { Badge, Empty, ErrorNote, Loading } from '../components/feedback.tsx';
import { Facts } from '../components/facts.tsx';
import { bytes, words } from '../components/format.ts';
import { List } from '../components/list.tsx';
import { Time } from '../components/time.tsx';
import { InItsMode } from '../layout/in-its-mode.tsx';
import { MODE_NAMES } from '../layout/use-mode.ts';
import { EsimStatus, usage } from './esims.tsx';
import { EsimRefunds } from './refunds.tsx';

const esimRoute = getRouteApi('/esims/$esimId');

export function EsimPage() {
  const { esimId } = esimRoute.useParams();
  const query = useQuery(oneQuery<Esim>('esims', esimId));
  return (
    <>
      <p className="crumbs">
        <Link to="/esims">eSIMs</Link>
      </p>
      <h1 className="mono">{esimId}</h1>
      {query.isPending && <Loading />}
      {query.isError && <ErrorNote error={query.error} retry={() => void query.refetch()} />}
      {query.data && (
        <InItsMode what="eSIM" mode={query.data.mode}>
          <EsimFacts esim={query.data} />
          <Plans esimId={esimId} />
          <EsimRefunds esim={query.data} />
          {/* Keyed, so that the QR code of one eSIM never appears under another's name. */}
          <Installation key={esimId} esimId={esimId} />
        </InItsMode>
      )}
    </>
  );
}

function EsimFacts({ esim }: { esim: Esim }) {
  return (
    <Facts
      entries={[
        ['Status', <EsimStatus key="status" status={esim.status} />],
        ['Requested', esim.pending_action && `${esim.pending_action}, not confirmed yet`],
        ['Last request', failureOf(esim)],
        ['Label', esim.label],
        ['Mode', MODE_NAMES[esim.mode]],
        ['Profile', words(esim.profile_status)],
        ['ICCID', <CopyFact key="iccid" text={esim.iccid} what="ICCID" />],
        ['Phone number', esim.msisdn],
        ['Data', usage(esim)],
        ['As of', <Time key="as-of" at={esim.data.as_of} />],
        [
          'Order',
          <Link key="order" to="/orders/$orderId" params={{ orderId: esim.order_id }}>
            {esim.order_id}
          </Link>,
        ],
        ['Package', <code key="package">{esim.package_id}</code>],
        ['Days', esim.days],
        ['APN', esim.apn],
        ['Install by', esim.install_by && <Time key="install" at={esim.install_by} />],
        ['Activated', esim.activated_at && <Time key="activated" at={esim.activated_at} />],
        ['Cancelable until', esim.cancelable_until && <Time key="cancelable" at={esim.cancelable_until} />],
        ['Expires', esim.expires_at && <Time key="expires" at={esim.expires_at} />],
        ['Created', <Time key="created" at={esim.created_at} />],
      ]}
    />
  );
}

function failureOf({ action_failure: failure }: Esim): string | null {
  return failure && `${failure.action} failed: ${failure.reason}`;
}

const TONES = {
  active: 'good',
  queued: 'wait',
  ended: 'off',
  unknown: 'off',
} as const satisfies Record<EsimPlan['status'], string>;

/** The eSIM's purchases. Without bytes, the wholesaler shows all plans as one, or does not list the plan. */
function Plans({ esimId }: { esimId: string }) {
  return (
    <section aria-labelledby="plans">
      <h2 id="plans">Plans</h2>
      <List<EsimPlan>
        path={`esims/${esimId}/plans`}
        mode={null}
        label="Plans"
        columns={['Bought with', 'Package', 'Status', 'Data', 'Starts', 'Ends']}
        row={(plan) => (
          <tr key={plan.id}>
            <td data-column="Bought with">
              <code>{plan.order_id ?? plan.topup_id ?? '–'}</code>
            </td>
            <td data-column="Package">
              <code>{plan.package_id ?? '–'}</code>
            </td>
            <td data-column="Status">
              <Badge tone={TONES[plan.status]}>{plan.status}</Badge>
            </td>
            <td data-column="Data">{dataOf(plan)}</td>
            <td data-column="Starts">{plan.starts_at ? <Time at={plan.starts_at} short /> : '–'}</td>
            <td data-column="Ends">{plan.ends_at ? <Time at={plan.ends_at} short /> : '–'}</td>
          </tr>
        )}
        empty={<Empty title="No plans" />}
      />
    </section>
  );
}

function dataOf({ used_bytes: used, total_bytes: total }: EsimPlan): string {
  return used === null || total === null ? '–' : `${bytes(used)} of ${bytes(total)}`;
}

/** Anyone with the install data can install the eSIM: it is shown only on a click, and the click is logged. */
function Installation({ esimId }: { esimId: string }) {
  const [data, setData] = useState<InstallData | null>(null);
  const { busy, error, run } = useAction(async () => {
    setData(await send<InstallData>('POST', `esims/${esimId}/install-data`));
  });
  return (
    <section aria-labelledby="install-data">
      <h2 id="install-data">Install data</h2>
      <ErrorNote error={error} />
      {data ? (
        <>
          <Shown data={data} />
          <div className="row-actions">
            <button type="button" className="button" onClick={() => setData(null)}>
              Hide
            </button>
          </div>
        </>
      ) : (
        <>
          <p className="hint">Anyone with this code can install the eSIM once. Viewing it is logged.</p>
          <div className="row-actions">
            <button type="button" className="button" disabled={busy} onClick={() => void run()}>
              Show install data
            </button>
          </div>
        </>
      )}
    </section>
  );
}

function Shown({ data }: { data: InstallData }) {
  const picture = `data:image/svg+xml;utf8,${encodeURIComponent(data.svg)}`;
  return (
    <div className="install">
      <img src={picture} alt="QR code of the activation code" width="220" height="220" className="qr" />
      <Facts
        entries={[
          [
            'Activation code',
            <span key="code">
              <code>{data.activation_code}</code>{' '}
              <CopyButton text={data.activation_code} label="Copy activation code" />
            </span>,
          ],
          ['SM-DP+ address', <code key="smdp">{data.smdp_address}</code>],
          ['Matching id', <code key="matching">{data.matching_id}</code>],
          ['Confirmation code', data.confirmation_code],
          ['PIN', data.pin],
          ['PUK', data.puk],
          [
            'On an iPhone',
            data.install && (
              <a key="ios" href={data.install.ios_url} rel="noreferrer">
                Install link
              </a>
            ),
          ],
          [
            'On Android',
            data.install && (
              <a key="android" href={data.install.android_url} rel="noreferrer">
                Install link
              </a>
            ),
          ],
        ]}
      />
    </div>
  );
}
