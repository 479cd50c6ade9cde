import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { packageQuery } from '../../api/queries.ts';
import { useSession } from '../../api/session.ts';
import type { Mode, Package } from '../../api/types.ts';
import { Code } from '../../components/code.tsx';
import { orderCommand } from '../../components/commands.ts';
import { Id } from '../../components/copy-button.tsx';
import { Facts } from '../../components/facts.tsx';
import { ErrorNote, Loading } from '../../components/feedback.tsx';
import { capitalized, counted, money, words } from '../../components/format.ts';
import { placeName, shortTitleOf, titleOf } from '../../components/package-name.tsx';
import { Badge } from '../../components/state.tsx';
import { Time } from '../../components/time.tsx';
import { Screen } from '../../layout/screen.tsx';
import { useMode } from '../../layout/use-mode.ts';
import { callsAndTexts, exitName, fairUse, PLANS, topupName } from './words.ts';

const packageRoute = getRouteApi('/catalog/$packageId');

/** Everything that is known of one package. */
export function PackagePage() {
  const { packageId } = packageRoute.useParams();
  const mode = useMode();
  const query = useQuery(packageQuery(packageId, mode));
  const item = query.data;
  return (
    <Screen
      name={item ? shortTitleOf(item) : 'Package'}
      parent={{ to: '/catalog', name: 'Catalog' }}
      title={item ? titleOf(item) : 'Package'}
      under={
        item && (
          <>
            {item.available ? <Badge tone="good">On sale</Badge> : <Badge tone="off">Withdrawn</Badge>}
            <Id text={item.id} what="package id" />
            <span>
              Updated <Time at={item.updated_at} as="short" />
            </span>
          </>
        )
      }
    >
      {query.isPending && <Loading />}
      {query.isError && <ErrorNote error={query.error} retry={() => void query.refetch()} />}
      {item && <Content item={item} mode={mode} />}
    </Screen>
  );
}

const ACTIVATION: Record<Package['activation_policy'], string> = {
  on_install: 'When the eSIM is installed',
  on_first_use: 'At first use',
  on_purchase: 'At the order',
};

function Content({ item, mode }: { item: Package; mode: Mode }) {
  const { api_url: apiUrl } = useSession();
  const { plan, price_per_day: perDay } = item;
  return (
    <div className="detail">
      <section className="card usage" aria-labelledby="price">
        <h2 id="price">Your price</h2>
        <p className="metric">
          {money(item.price)}{' '}
          <span className="delta">{plan.days ? `for ${counted(plan.days.min, 'day')}` : 'for one eSIM'}</span>
        </p>
        <Facts
          small
          entries={[
            ['Price a day', perDay && money(perDay)],
            ['Days', plan.days ? `${plan.days.min} to ${plan.days.max}` : counted(item.validity_days, 'day')],
            ['Data', item.data_label],
            ['Calls', callsAndTexts(item)],
            ['Plan', PLANS[plan.kind]],
          ]}
        />
      </section>
      <div className="story">
        <section aria-labelledby="facts">
          <div className="section-head">
            <h2 id="facts">Facts</h2>
          </div>
          <Facts
            kind="wide"
            entries={[
              ['Fair use', fairUse(item) ?? item.speed_policy ?? 'Not stated'],
              ['Exit country', exitName(item) ?? 'Not stated'],
              ['Fastest network', item.max_generation ?? 'Not stated'],
              ['Hotspot', item.hotspot === null ? 'Not stated' : item.hotspot ? 'Allowed' : 'Not allowed'],
              ['Validity begins', ACTIVATION[item.activation_policy]],
              ['Install within', item.install_within_days && counted(item.install_within_days, 'day')],
              ['Top-up', topupName(item)],
              ['Region', item.region_name ?? (item.region && capitalized(words(item.region)))],
              ['Variant', item.variant],
              ['Works in', item.coverage.map(placeName).sort().join(', ')],
              ['Networks', [...new Set(item.networks.map(({ operator }) => operator))].join(', ')],
              ['Notes', item.notes],
            ]}
          />
        </section>
        <section aria-labelledby="order-it">
          <div className="section-head">
            <h2 id="order-it">Order it</h2>
          </div>
          <Code label="Command" head="Terminal" text={orderCommand(apiUrl, mode, item.id)} />
        </section>
      </div>
    </div>
  );
}
