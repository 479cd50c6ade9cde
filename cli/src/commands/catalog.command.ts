import type { Command, Options } from '../command.js';
import type { Context } from '../context.js';
import { EXIT, type ExitCode, usageError } from '../exit-codes.js';
import { DEFAULT_SORT, SORTS, sortPackages } from '../package-order.js';
import type { Package } from '../partner-api.js';
import { counted, moneyText } from '../terminal/values.js';
import { oneOf, wholeNumber } from './values.js';

export const catalog: Command = {
  name: 'catalog',
  summary: 'list the packages that this key can sell',
  arguments: '[country]',
  details: `Reads every page of matching packages, one call per 100, and sorts them. Without --type, a country also lists the
regional and global packages that cover it, after its own.`,
  options: {
    country: { type: 'string', value: 'FR', help: 'two upper-case letters, for example FR' },
    region: { type: 'string', value: 'europe', help: 'a region, for example europe' },
    type: { type: 'string', value: 'country|regional|global', help: 'coverage of the package' },
    kind: { type: 'string', value: 'base|topup', help: 'base packages (default) or top-ups' },
    sort: {
      type: 'string',
      value: SORTS.join('|'),
      help: `${DEFAULT_SORT} (default): by name, then by price; - sorts in descending order (--sort=-price)`,
    },
    shelf: {
      type: 'boolean',
      help: 'only packages that no other one beats in data, days and price; needs a country or --region',
    },
    limit: { type: 'string', value: 'n', help: 'maximum number to show (default: 25)' },
    cursor: {
      type: 'string',
      value: 'cursor',
      help: 'show one page after this cursor, in the order of the API',
    },
  },
  examples: [
    { command: 'esim catalog --country FR --type country', says: 'packages for France alone' },
    { command: 'esim catalog FR --sort price', says: 'every package that works there, cheapest first' },
    {
      command: 'esim catalog JP --type country --shelf',
      says: 'the packages of Japan worth showing, cheapest first',
    },
    { command: 'esim catalog --region europe --json | head -1', says: 'the first package as JSON' },
  ],
  run: async (context, options, [country]) => {
    const filters = {
      country: oneOf(options, 'country', country),
      region: options.text('region'),
      type: options.text('type'),
      kind: options.text('kind') ?? 'base',
    };
    if (options.flag('shelf')) return showShelf(context, options, filters);
    const cursor = options.text('cursor');
    if (cursor !== undefined) {
      if (options.text('sort') !== undefined)
        throw usageError('--cursor works only in the order of the API', 'Omit --sort or --cursor.');
      const page = await context.api.packages({ ...filters, limit: options.text('limit'), cursor });
      showPackages(context, page.data);
      context.output.noteNextPage(page);
      return EXIT.ok;
    }
    const limit = wholeNumber(options, 'limit', 25);
    const all = await readAll(context, filters);
    const sorted = sortPackages(all, options.text('sort') ?? DEFAULT_SORT);
    showPackages(context, sorted.slice(0, limit));
    if (sorted.length > limit)
      context.output.note(
        `${limit} of ${counted(sorted.length, 'package')}. Use --limit ${sorted.length} to show all.`,
      );
    return EXIT.ok;
  },
};

type Filters = Readonly<Record<string, string | undefined>>;

async function showShelf(context: Context, options: Options, filters: Filters): Promise<ExitCode> {
  if (options.text('cursor') !== undefined)
    throw usageError('a shelf has one page', 'Omit --cursor or --shelf.');
  const limit = wholeNumber(options, 'limit', 25);
  const sort = options.text('sort');
  if (sort === DEFAULT_SORT)
    throw usageError(`a shelf is not sorted by ${DEFAULT_SORT}`, 'Use --sort price or --sort data.');
  const { data, dropped } = await context.api.shelf({ ...filters, sort });
  showPackages(context, data.slice(0, limit));
  context.output.note(
    `${Math.min(limit, data.length)} of ${counted(data.length, 'package')}. Left out: ${dropped.length} for which another one is at least as good.`,
  );
  return EXIT.ok;
}

async function readAll({ api, output }: Context, filters: Filters): Promise<Package[]> {
  const progress = output.progress();
  const all: Package[] = [];
  try {
    for await (const found of api.allPackages(filters)) {
      all.push(found);
      if (all.length % 100 === 0) progress.update(`${all.length} packages read`);
    }
    return all;
  } finally {
    progress.done();
  }
}

/** Prints packages with their prices. */
export function showPackages({ output }: Context, packages: readonly Package[]): ExitCode {
  for (const found of packages) output.data(found);
  output.table(
    packages.map((found) => [
      found.id,
      `${moneyText(found.price)}${found.price_per_day ? ' a day' : ''}`,
      found.data_label ?? 'no data',
      found.plan.days ? `1 to ${found.plan.days.max} days` : counted(found.validity_days, 'day'),
      found.available ? found.title : `${found.title} (not available)`,
    ]),
  );
  return EXIT.ok;
}

export const catalogChanges: Command = {
  name: 'catalog changes',
  summary: 'list changes of the catalog, oldest first',
  options: {
    after: { type: 'string', value: 'cursor', help: 'only changes after this cursor' },
    limit: { type: 'string', value: 'n', help: 'maximum number to show, 1 to 100 (default: 25)' },
  },
  examples: [
    { command: 'esim catalog changes', says: 'the oldest changes of the last 30 days' },
    { command: 'esim catalog changes --json | jq -r .package_id', says: 'the ids of changed packages' },
  ],
  run: async ({ api, output }, options) => {
    const page = await api.catalogChanges(options.text('after'), wholeNumber(options, 'limit', 25));
    for (const change of page.data) output.data(change);
    output.table(
      page.data.map((change) => [change.at, change.kind, change.package_id, change.changed.join(', ')]),
    );
    output.note(`${page.hasMore ? 'next page' : 'new changes'}: --after ${page.nextCursor}`);
    return EXIT.ok;
  },
};

export const destinations: Command = {
  name: 'destinations',
  summary: 'list the countries and regions with packages on sale',
  examples: [{ command: 'esim destinations', says: 'every destination with its lowest price' }],
  run: async ({ api, output }) => {
    const places = await api.destinations();
    for (const place of places) output.data(place);
    output.table(
      places.map((place) => [
        place.code,
        place.name,
        counted(place.packages, 'package'),
        `from ${moneyText(place.price_from)}`,
        [...(place.has_unlimited ? ['unlimited'] : []), ...(place.has_daily ? ['daily'] : [])].join(', '),
      ]),
    );
    return EXIT.ok;
  },
};
