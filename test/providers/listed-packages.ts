import {
  callProvider,
  type PackagePage,
  type ProviderPackage,
  type LiveProvider,
} from '../../src/providers/index.js';

/** All pages of all lists, as the synchronization reads them. */
export async function listPackages(provider: LiveProvider): Promise<readonly ProviderPackage[]> {
  const packages: ProviderPackage[] = [];
  for (const list of provider.listPackages()) {
    for (let from: number | null = 0; from !== null;) {
      const at: number = from;
      const read = (signal: AbortSignal): Promise<PackagePage> => list.readPage(at, signal);
      const page = await callProvider(provider, read, performance.now(), list.pageTimeoutMs);
      packages.push(...page.packages);
      from = page.next;
    }
  }
  return packages;
}
