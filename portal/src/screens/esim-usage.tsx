import { Link } from '@tanstack/react-router';
import type { Esim } from '../api/types.ts';
import { Id } from '../components/copy-button.tsx';
import { Facts } from '../components/facts.tsx';
import { bytes, capitalized, percent, words } from '../components/format.ts';
import { Meter } from '../components/meter.tsx';
import { State } from '../components/state.tsx';
import { Time } from '../components/time.tsx';

/** Shares of used data at which the bar warns, and at which nothing is left. */
const WARNS_FROM = 0.8;

/** An eSIM's data and state. @param link whether it leads to the eSIM's page */
export function UsageCard({ esim, link = false }: { esim: Esim; link?: boolean }) {
  return (
    <section className="card usage" aria-labelledby="usage">
      <Data esim={esim} />
      <Facts
        small
        entries={[
          ['Status', <State key="status" of={esim.status} />],
          ['Requested', esim.pending_action && `${capitalized(esim.pending_action)}, not confirmed yet`],
          ['Expires', esim.expires_at && <Time key="expires" at={esim.expires_at} as="short" />],
          [
            'Install by',
            esim.activated_at ? null : esim.install_by && <Time key="by" at={esim.install_by} as="short" />,
          ],
          [
            'eSIM',
            link ? (
              <Link key="esim" to="/esims/$esimId" params={{ esimId: esim.id }}>
                eSIM …{esim.id.slice(-6)}
              </Link>
            ) : null,
          ],
          ['ICCID', <Revealed key="iccid" text={esim.iccid} what="ICCID" />],
          ['Profile', capitalized(words(esim.profile_status))],
          ['APN', esim.apn && <code key="apn">{esim.apn}</code>],
          ['Phone', esim.msisdn],
        ]}
      />
    </section>
  );
}

function Revealed(props: { text: string; what: string }) {
  return (
    <span className="reveals">
      <Id {...props} />
    </span>
  );
}

function Data({ esim: { data } }: { esim: Esim }) {
  const { used_bytes: used, total_bytes: total } = data;
  if (data.unlimited || total === null)
    return (
      <>
        <h2 id="usage">Data used</h2>
        <p className="metric">
          {bytes(used)} <span className="delta">of unlimited data</span>
        </p>
        <p className="wallet-row">
          <span>
            as of <Time at={data.as_of} as="short" />
          </span>
        </p>
      </>
    );
  const share = total === 0 ? 0 : Math.min(1, used / total);
  return (
    <>
      <h2 id="usage">Data left</h2>
      <p className="metric">
        {bytes(Math.max(0, total - used))} <span className="delta">of {bytes(total)}</span>
      </p>
      <Meter
        share={share}
        label={`${bytes(used)} of ${bytes(total)} used, ${percent(share)}`}
        {...(share >= WARNS_FROM ? { tone: 'warn' as const } : {})}
      />
      <p className="wallet-row">
        <span>
          {bytes(used)} used, {percent(share)}
        </span>
        <span>
          as of <Time at={data.as_of} as="short" />
        </span>
      </p>
    </>
  );
}
