import type { Command } from '../command.js';
import type { Context } from '../context.js';
import { EXIT, type ExitCode, usageError } from '../exit-codes.js';
import { DEFAULT_SORT, SORTS, sortPackages } from '../package-order.js';
import type { Package } from '../partner-api.js';
import { bytesText, counted, moneyText } from '../terminal/values.js';
import { oneOf, wholeNumber } from './values.js';

export const catalog: Command = {
  name: 'catalog',
  summary: 'list packages that this key may sell',
  arguments: '[country]',
  details: `Reads every page of what fits, a call for each 100 packages, and sorts them. Without --type a country also has the
regional and global packages that cover it; they come after its own.`,
  options: {
    country: { type: 'string', value: 'FR', help: 'two upper-case letters' },
    region: { type: 'string', value: 'europe', help: 'a region' },
    type: { type: 'string', value: 'country|regional|global', help: 'what a package covers' },
    kind: { type: 'string', value: 'base|topup', help: 'base (default) or top-up packages' },
    sort: {
      type: 'string',
      value: SORTS.join('|'),
      help: `${DEFAULT_SORT} (default): by its name, then by price; with - the largest first (--sort=-price)`,
    },
    limit: { type: 'string', value: 'n', help: 'how many to show (25)' },
    cursor: { type: 'string', value: 'cursor', help: 'one page behind this cursor, as the API sorts it' },
  },
  examples: [
    { command: 'esim catalog --country FR --type country', says: 'packages for France alone' },
    { command: 'esim catalog FR --sort price', says: 'what works there, cheapest first' },
    { command: 'esim catalog --region europe --json | head -1', says: 'the first one as JSON' },
  ],
  run: async (context, options, [country]) => {
    const filters = {
      country: oneOf(options, 'country', country),
      region: options.text('region'),
      type: options.text('type'),
      kind: options.text('kind') ?? 'base',
    };
    const cursor = options.text('cursor');
    if (cursor !== undefined) {
      if (options.text('sort') !== undefined)
        throw usageError('--cursor goes on in the order of the API', 'Leave --sort or --cursor out.');
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
        `${limit} of ${counted(sorted.length, 'package')}: --limit ${sorted.length} shows all`,
      );
    return EXIT.ok;
  },
};

async function readAll(
  { api, output }: Context,
  filters: Readonly<Record<string, string | undefined>>,
): Promise<Package[]> {
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

/** Packages with their prices. */
export function showPackages({ output }: Context, packages: readonly Package[]): ExitCode {
  for (const found of packages) output.data(found);
  output.table(
    packages.map((found) => [
      found.id,
      moneyText(found.price),
      found.data_bytes === null && !found.unlimited
        ? 'no data'
        : bytesText(found.unlimited ? null : found.data_bytes),
      counted(found.validity_days, 'day'),
      found.available ? found.title : `${found.title} (not available)`,
    ]),
  );
  return EXIT.ok;
}
