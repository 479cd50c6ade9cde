import { readFileSync } from 'node:fs';

/** As V8 writes it with `--cpu-prof`. */
interface CpuProfile {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: { readonly functionName: string; readonly url: string };
  }[];
  readonly samples: readonly number[];
  /** Microseconds since the sample before. */
  readonly timeDeltas: readonly number[];
}

/** V8's own names of what is no function. */
const OF_V8: Readonly<Record<string, string>> = {
  '(garbage collector)': 'garbage collection',
  '(program)': 'native code: system calls, sockets, hashes',
};
const IDLE = '(idle)';
const MOST = 12;

/**
 * Where a process spent its time by its own frames, the dearest first, as parts of all that it did not idle: packages,
 * Node.js, our features. @throws Error when there is no such profile
 */
export function describeProfile(file: string): string[] {
  const profile = JSON.parse(readFileSync(file, 'utf8')) as CpuProfile;
  const places = new Map(profile.nodes.map(({ id, callFrame }) => [id, placeOf(callFrame)]));
  const times = new Map<string, number>();
  for (const [index, id] of profile.samples.entries()) {
    const place = places.get(id)!;
    if (place !== IDLE) times.set(place, (times.get(place) ?? 0) + profile.timeDeltas[index]!);
  }
  const all = [...times.values()].reduce((sum, time) => sum + time, 0);
  return [...times]
    .sort(([, a], [, b]) => b - a)
    .slice(0, MOST)
    .map(([place, time]) => `  ${((time / all) * 100).toFixed(1).padStart(4)} %  ${place}`);
}

function placeOf({ functionName, url }: { readonly functionName: string; readonly url: string }): string {
  if (functionName === IDLE) return IDLE;
  if (url === '') return OF_V8[functionName] ?? 'native code: system calls, sockets, hashes';
  if (url.startsWith('node:'))
    return `Node.js ${url.replace('node:', '').replace('internal/', '').split('/')[0]!}`;
  const packaged = /node_modules\/((?:@[^/]+\/)?[^/]+)\/(?!.*node_modules)/.exec(url);
  if (packaged) return packaged[1]!;
  const own = /\/dist\/([^/]+)(\/[^/]+)?/.exec(url);
  if (!own) return 'other';
  return own[1] === 'infra' ? `src/infra${own[2] ?? ''}` : `src/${own[1]!}`;
}
