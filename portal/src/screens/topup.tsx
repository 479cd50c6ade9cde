import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { every, oneQuery } from '../api/queries.ts';
import type { Topup } from '../api/types.ts';
import { Copyable, Id } from '../components/copy-button.tsx';
import { Facts } from '../components/facts.tsx';
import { ErrorNote, Loading } from '../components/feedback.tsx';
import { money } from '../components/format.ts';
import { PackageName } from '../components/package-name.tsx';
import { State } from '../components/state.tsx';
import { Time } from '../components/time.tsx';
import { InItsMode, useIsShown } from '../layout/in-its-mode.tsx';
import { Screen } from '../layout/screen.tsx';
import { added } from './topups.tsx';

const topupRoute = getRouteApi('/top-ups/$topupId');

export function TopupPage() {
  const { topupId } = topupRoute.useParams();
  const query = useQuery({ ...oneQuery<Topup>('topups', topupId), refetchInterval: every(3_000) });
  const topup = query.data;
  const isShown = useIsShown(topup?.mode);
  return (
    <Screen
      name={`Top-up …${topupId.slice(-6)}`}
      parent={{ to: '/top-ups', name: 'Top-ups' }}
      title={
        topup && isShown ? (
          <PackageName id={topup.package_id} mode={topup.mode} days={topup.days} />
        ) : (
          'Top-up'
        )
      }
      under={
        topup &&
        isShown && (
          <>
            <State of={topup.status} />
            {topup.reference && <Copyable text={topup.reference} what="reference" />}
            <Id text={topup.id} what="top-up id" />
            <Time at={topup.created_at} />
          </>
        )
      }
    >
      {query.isPending && <Loading />}
      {query.isError && <ErrorNote error={query.error} retry={() => void query.refetch()} />}
      {topup && (
        <InItsMode what="top-up" mode={topup.mode}>
          <section className="card" aria-label="Facts">
            <Facts
              entries={[
                ['Adds', added(topup)],
                ['Price', `${money(topup.price)}${topup.status === 'failed' ? ', not charged' : ''}`],
                ['Placed', topup.auto ? 'Automatically' : 'Through the API'],
                ['Failure', topup.failure?.reason],
                [
                  'eSIM',
                  <Link key="esim" to="/esims/$esimId" params={{ esimId: topup.esim_id }}>
                    eSIM …{topup.esim_id.slice(-6)}
                  </Link>,
                ],
                ['ICCID', <Id key="iccid" text={topup.iccid} what="ICCID" />],
                ['Package', <Id key="package" text={topup.package_id} what="package id" />],
                ['Completed', topup.completed_at && <Time key="completed" at={topup.completed_at} />],
                ['Failed', topup.failed_at && <Time key="failed" at={topup.failed_at} />],
                ...Object.entries(topup.metadata).map(
                  ([name, value]) => [`metadata.${name}`, value] as const,
                ),
              ]}
            />
          </section>
        </InItsMode>
      )}
    </Screen>
  );
}
