import type { Command } from '../command.js';
import type { Context } from '../context.js';
import { EXIT, type ExitCode } from '../exit-codes.js';
import type { Package, Page } from '../partner-api.js';
import { bytesText, moneyText } from '../terminal/values.js';

export const catalog: Command = {
  name: 'catalog',
  summary: 'list packages that this key may sell',
  options: {
    country: { type: 'string', value: 'FR', help: 'two upper-case letters' },
    region: { type: 'string', value: 'europe', help: 'a region' },
    type: { type: 'string', value: 'country|regional|global', help: 'what a package covers' },
    kind: { type: 'string', value: 'base|topup', help: 'base (default) or top-up packages' },
    limit: { type: 'string', value: 'n', help: 'how many, 1 to 100 (25)' },
    cursor: { type: 'string', value: 'cursor', help: 'go on behind a page' },
  },
  examples: [
    { command: 'esim catalog --country FR --type country', says: 'packages for France alone' },
    { command: 'esim catalog --country FR', says: 'and regional and global ones that work there' },
    { command: 'esim catalog --region europe --json | head -1', says: 'the first one as JSON' },
  ],
  run: async (context, options) => {
    const page = await context.api.packages({
      country: options.text('country'),
      region: options.text('region'),
      type: options.text('type'),
      kind: options.text('kind') ?? 'base',
      limit: options.text('limit'),
      cursor: options.text('cursor'),
    });
    return showPackages(context, page);
  },
};

/** Packages with their prices, and how to go on behind them. */
export function showPackages({ output }: Context, page: Page<Package>): ExitCode {
  for (const found of page.data) output.data(found);
  output.table(
    page.data.map((found) => [
      found.id,
      moneyText(found.price),
      found.data_bytes === null && !found.unlimited
        ? 'no data'
        : bytesText(found.unlimited ? null : found.data_bytes),
      `${found.validity_days} days`,
      found.available ? found.title : `${found.title} (not available)`,
    ]),
  );
  output.noteNextPage(page);
  return EXIT.ok;
}
