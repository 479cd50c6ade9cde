import { Switch } from '@base-ui/react/switch';
import { useInfiniteQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useState } from 'react';
import type { Query } from '../../api/client.ts';
import { pages } from '../../api/queries.ts';
import type { Destination, ListedPackage, Page } from '../../api/types.ts';
import { Callout } from '../../components/callout.tsx';
import { Empty, ErrorNote, Loading } from '../../components/feedback.tsx';
import { TypedFilter, useSetParameter } from '../../components/filters.tsx';
import { Pick } from '../../components/form.tsx';
import { counted, minorUnits, money } from '../../components/format.ts';
import { Icon } from '../../components/icon.tsx';
import { LoadMore, Table, type Column } from '../../components/list.tsx';
import { placeName, shortTitleOf } from '../../components/package-name.tsx';
import { Segments } from '../../components/segments.tsx';
import { Screen } from '../../layout/screen.tsx';
import { useMode } from '../../layout/use-mode.ts';
import { callsAndTexts, exitName, fairUse, network, topupName } from './words.ts';

const catalogRoute = getRouteApi('/catalog');

const PLANS = [
  ['', 'All plans'],
  ['total', 'One allowance'],
  ['daily', 'Day pass'],
  ['unlimited', 'Unlimited'],
] as const;
const SORTS = [
  ['', 'Recommended'],
  ['price', 'Lowest price'],
  ['-price', 'Highest price'],
  ['data', 'Least data'],
  ['-data', 'Most data'],
] as const;
const TOPUPS = [
  ['', 'Any'],
  ['true', 'Allowed'],
  ['false', 'Not allowed'],
] as const;
const COLUMNS = [
  'Package',
  'Validity',
  'Fair use',
  'Exit country',
  'Top-up',
  ['Your price', 'number'],
] as const satisfies readonly Column[];

/** The filter of the API that a destination's code stands for. */
function placeFilter(code: string): Query {
  if (code === 'global') return { type: 'global' };
  return /^[A-Z]{2}$/.test(code) ? { country: code } : { region: code };
}

type ShelfPage = Page<ListedPackage> & { dropped?: readonly unknown[] };
type Props = { code: string; destination: Destination | undefined };

/** The packages of a destination. */
export function Shelf({ code, destination }: Props) {
  const mode = useMode();
  const search = catalogRoute.useSearch();
  const set = useSetParameter();
  const isShelf = search.all === undefined;
  const maxPrice = minorUnits(search.max_price ?? '', 'USD');
  const query = useInfiniteQuery(
    pages<ListedPackage>('catalog', mode, {
      ...placeFilter(code),
      kind: 'base',
      plan: search.plan,
      exit_country: search.exit_country,
      topup_supported: search.topups,
      sort: search.sort,
      max_price_amount: maxPrice ?? undefined,
      // A shelf has its own order.
      shelf: isShelf && search.sort === undefined ? 'true' : undefined,
    }),
  );
  const read = query.data?.pages ?? [];
  const packages = read.flatMap((page) => page.data);
  const dropped = (read as readonly ShelfPage[]).reduce((sum, page) => sum + (page.dropped?.length ?? 0), 0);
  const name = destination?.name ?? placeName(code);
  return (
    <Screen
      name={name}
      parent={{ to: '/catalog', name: 'Catalog' }}
      lead={
        destination &&
        `${counted(destination.packages, 'package')}, from ${money(destination.price_from)}. These are your prices.`
      }
    >
      <div className="stack">
        <div className="filters" role="search" aria-label="Filters">
          <Segments
            legend="Plan"
            options={PLANS}
            value={PLANS.find(([plan]) => plan === search.plan)?.[0] ?? ''}
            onChange={(plan) => set('plan', plan)}
          />
          <TypedFilter
            label="Exit country"
            placeholder="any, such as JP"
            value={search.exit_country ?? ''}
            isWhole={(text) => /^[A-Za-z]{2}$/.test(text)}
            onRest={(text) => set('exit_country', text.toUpperCase())}
          />
          <TypedFilter
            label="Up to $"
            placeholder="any"
            value={search.max_price ?? ''}
            isWhole={(text) => minorUnits(text, 'USD') !== null}
            onRest={(text) => set('max_price', text)}
          />
          <Pick
            label="Top-ups"
            value={search.topups ?? ''}
            onChange={(value) => set('topups', value)}
            options={TOPUPS}
          />
          <Pick
            label="Sort"
            value={search.sort ?? ''}
            onChange={(value) => set('sort', value)}
            options={SORTS}
          />
        </div>
        <section aria-labelledby="shelf">
          <div className="section-head">
            <h2 id="shelf">{isShelf ? 'Packages' : 'All packages'}</h2>
            <span className="toggle small">
              <Switch.Root
                className="switch"
                aria-labelledby="hide-beaten"
                checked={isShelf}
                disabled={search.sort !== undefined}
                onCheckedChange={(on) => set('all', on ? '' : '1')}
              />
              <span id="hide-beaten">Hide packages that another one beats</span>
            </span>
          </div>
          {query.isPending && <Loading lines={6} />}
          {query.isError && <ErrorNote error={query.error} retry={() => void query.refetch()} />}
          {query.isSuccess && packages.length === 0 && (
            <Empty title="No matches" icon="search">
              <p>Remove a filter to see more.</p>
            </Empty>
          )}
          {packages.length > 0 && (
            <div className="framed">
              <Table label="Packages" className="shelf" columns={COLUMNS} busy={query.isPlaceholderData}>
                {packages.map((item) => (
                  <PackageRow key={item.id} item={item} />
                ))}
              </Table>
            </div>
          )}
          <LoadMore
            more={query.hasNextPage}
            busy={query.isFetchingNextPage || query.isPlaceholderData}
            load={() => void query.fetchNextPage()}
          />
          <p className="table-foot">
            The exit country is where the eSIM’s traffic reaches the internet. “Not stated” means that the
            wholesaler does not say. We never guess.
          </p>
        </section>
        {dropped > 0 && (
          <Callout tone="off" title={`Why ${counted(dropped, 'package is', 'packages are')} hidden`}>
            <p>
              Each has less data, fewer days or a slower network than a package above, for the same price or
              more.
            </p>
          </Callout>
        )}
      </div>
    </Screen>
  );
}

const NOT_STATED = (
  <span className="unknown" title="The wholesaler does not say">
    Not stated
  </span>
);

function PackageRow({ item }: { item: ListedPackage }) {
  const { plan, price_per_day: perDay } = item;
  const [days, setDays] = useState(plan.days?.min ?? item.validity_days);
  const total = plan.days && perDay ? { ...perDay, amount: perDay.amount * days } : item.price;
  return (
    <tr>
      <th scope="row">
        <Link to="/catalog/$packageId" params={{ packageId: item.id }} className="row-link">
          {shortTitleOf(item)}
        </Link>
        <span className="second">{network(item)}</span>
        {callsAndTexts(item) && <span className="second">{callsAndTexts(item)}</span>}
      </th>
      <td data-label="Validity">
        {plan.days ? (
          <span>
            <Stepper title={shortTitleOf(item)} value={days} range={plan.days} onChange={setDays} />
            <span className="second">
              {plan.days.min} to {plan.days.max} days
            </span>
          </span>
        ) : (
          counted(item.validity_days, 'day')
        )}
      </td>
      <td data-label="Fair use" className="fair">
        {fairUse(item) ?? NOT_STATED}
      </td>
      <td data-label="Exit country">{exitName(item) ?? NOT_STATED}</td>
      <td data-label="Top-up">{topupName(item)}</td>
      <td className="num at-end">
        <strong className="price">{money(total)}</strong>
        <span className="second">
          {plan.days && perDay ? `${days} × ${money(perDay)} a day` : pricePerGigabyte(item)}
        </span>
      </td>
    </tr>
  );
}

const GIGABYTE = 1_000_000_000;

function pricePerGigabyte({ price, data_bytes: data, plan }: ListedPackage): string | null {
  if (plan.kind !== 'total' || data === null || data < GIGABYTE) return null;
  return `${money({ ...price, amount: Math.round(price.amount / (data / GIGABYTE)) })} per GB`;
}

type StepperProps = {
  title: string;
  value: number;
  range: { min: number; max: number };
  onChange: (value: number) => void;
};

/** A number of days with buttons. */
function Stepper({ title, value, range: { min, max }, onChange }: StepperProps) {
  const change = (next: number) => onChange(Math.min(max, Math.max(min, Math.round(next) || min)));
  return (
    <span className="stepper" role="group" aria-label={`Days of ${title}`}>
      <button
        type="button"
        aria-label="One day less"
        disabled={value <= min}
        onClick={() => change(value - 1)}
      >
        <Icon name="minus" />
      </button>
      <input
        type="number"
        inputMode="numeric"
        aria-label="Days"
        min={min}
        max={max}
        value={value}
        onChange={({ target }) => change(Number(target.value))}
      />
      <button
        type="button"
        aria-label="One day more"
        disabled={value >= max}
        onClick={() => change(value + 1)}
      >
        <Icon name="plus" />
      </button>
    </span>
  );
}
