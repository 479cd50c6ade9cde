import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useState } from 'react';
import { send } from '../api/client.ts';
import { every, oneQuery } from '../api/queries.ts';
import type { Esim, EsimPlan, InstallData } from '../api/types.ts';
import { useAction } from '../api/use-action.ts';
import { Callout } from '../components/callout.tsx';
import { CopyButton, Id } from '../components/copy-button.tsx';
import { Facts } from '../components/facts.tsx';
import { ErrorNote, Loading } from '../components/feedback.tsx';
import { bytes, capitalized, counted } from '../components/format.ts';
import { List } from '../components/list.tsx';
import { PackageName } from '../components/package-name.tsx';
import { State } from '../components/state.tsx';
import { Time } from '../components/time.tsx';
import { InItsMode, useIsShown } from '../layout/in-its-mode.tsx';
import { Screen } from '../layout/screen.tsx';
import { AutoTopupSection } from './auto-topup.tsx';
import { EsimActions } from './esim-actions.tsx';
import { UsageCard } from './esim-usage.tsx';
import { CreateInstallLink, InstallLinks } from './install-links.tsx';
import { EsimRefunds } from './refunds.tsx';

const esimRoute = getRouteApi('/esims/$esimId');

export function EsimPage() {
  const { esimId } = esimRoute.useParams();
  const query = useQuery({ ...oneQuery<Esim>('esims', esimId), refetchInterval: every(5_000) });
  const esim = query.data;
  const isShown = useIsShown(esim?.mode);
  return (
    <Screen
      name={(isShown && esim?.label) || `eSIM …${esimId.slice(-6)}`}
      parent={{ to: '/esims', name: 'eSIMs' }}
      title={
        esim && isShown ? <PackageName id={esim.package_id} mode={esim.mode} days={esim.days} /> : 'eSIM'
      }
      under={
        esim &&
        isShown && (
          <>
            <State of={esim.status} />
            {esim.label && <span>{esim.label}</span>}
            <Id text={esim.id} what="eSIM id" />
            <Time at={esim.created_at} />
          </>
        )
      }
      actions={
        esim &&
        isShown && (
          <>
            <CreateInstallLink key={`link ${esimId}`} esim={esim} />
            <EsimActions key={esimId} esim={esim} />
          </>
        )
      }
    >
      {query.isPending && <Loading />}
      {query.isError && <ErrorNote error={query.error} retry={() => void query.refetch()} />}
      {esim && (
        <InItsMode what="eSIM" mode={esim.mode}>
          {esim.action_failure && (
            <Callout tone="warn" title={`${capitalized(esim.action_failure.action)} failed`}>
              <p>{esim.action_failure.reason}</p>
            </Callout>
          )}
          <div className="detail">
            <UsageCard esim={esim} />
            <div className="story">
              {/* Keyed, so that the QR code of one eSIM never appears under another's name. */}
              <Installation key={esimId} esimId={esimId} />
              <InstallLinks esim={esim} />
              <Plans esim={esim} />
              <AutoTopupSection esim={esim} />
              <EsimRefunds esim={esim} />
            </div>
            <aside className="rest" aria-label="Facts">
              <Details esim={esim} />
            </aside>
          </div>
        </InItsMode>
      )}
    </Screen>
  );
}

function Details({ esim }: { esim: Esim }) {
  return (
    <section className="card" aria-labelledby="details">
      <h2 id="details">Details</h2>
      <Facts
        small
        entries={[
          [
            'Order',
            <Link key="order" to="/orders/$orderId" params={{ orderId: esim.order_id }}>
              Order …{esim.order_id.slice(-6)}
            </Link>,
          ],
          ['Package', <Id key="package" text={esim.package_id} what="package id" />],
          ['Days', esim.days && counted(esim.days, 'day')],
          ['Activated', esim.activated_at && <Time key="activated" at={esim.activated_at} as="short" />],
          [
            'Cancelable until',
            esim.cancelable_until && <Time key="cancelable" at={esim.cancelable_until} as="short" />,
          ],
          ...Object.entries(esim.metadata).map(([name, value]) => [name, value] as const),
        ]}
      />
    </section>
  );
}

/** The eSIM's purchases. Without bytes, the wholesaler shows all plans as one, or does not list the plan. */
function Plans({ esim }: { esim: Esim }) {
  return (
    <section aria-labelledby="plans">
      <div className="section-head">
        <h2 id="plans">Plans</h2>
      </div>
      <List<EsimPlan>
        path={`esims/${esim.id}/plans`}
        mode={null}
        label="Plans"
        columns={['Package', 'Status', ['Data used', 'number'], 'Starts', 'Ends']}
        row={(plan) => (
          <tr key={plan.id}>
            <th scope="row">
              {plan.package_id ? <PackageName id={plan.package_id} mode={esim.mode} /> : 'Not stated'}
              {plan.source && (
                <span className="second">{plan.source === 'order' ? 'From the order' : 'From a top-up'}</span>
              )}
            </th>
            <td className="at-state">
              <State of={plan.status} />
            </td>
            <td className="num at-end">{dataOf(plan)}</td>
            <td data-label="Starts">{plan.starts_at ? <Time at={plan.starts_at} as="short" /> : '–'}</td>
            <td data-label="Ends">{plan.ends_at ? <Time at={plan.ends_at} as="short" /> : '–'}</td>
          </tr>
        )}
        empty={<p className="muted">No plans yet.</p>}
      />
      <p className="hint">“–” and “Unknown” mean that the wholesaler does not say. We never guess.</p>
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
    <section aria-labelledby="install-data" className="installation">
      <div className="section-head">
        <h2 id="install-data">Install data</h2>
      </div>
      <ErrorNote error={error} />
      {data ? (
        <>
          <Shown data={data} />
          <button type="button" className="button" onClick={() => setData(null)}>
            Hide
          </button>
        </>
      ) : (
        <>
          <p className="hint">Anyone with this code can install the eSIM once. Viewing it is logged.</p>
          <button type="button" className="button" aria-busy={busy} onClick={() => void run()}>
            Show install data
          </button>
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
        kind="wide"
        entries={[
          [
            'Activation code',
            <span key="code" className="copyable">
              <code>{data.activation_code}</code>
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
