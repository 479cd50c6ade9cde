import { existsSync, readFileSync } from 'node:fs';
import { SourceMap, type SourceMapPayload } from 'node:module';
import { fileURLToPath } from 'node:url';

interface CallFrame {
  readonly functionName: string;
  readonly url: string;
  /** Zero-based, in the compiled file. */
  readonly lineNumber: number;
  readonly columnNumber: number;
}

/** The format that V8 writes with `--cpu-prof`. */
interface CpuProfile {
  readonly nodes: readonly { readonly id: number; readonly callFrame: CallFrame }[];
  readonly samples: readonly number[];
  /** Microseconds since the previous sample. */
  readonly timeDeltas: readonly number[];
}

/** V8's pseudo-functions. */
const OF_V8: Readonly<Record<string, string>> = {
  '(garbage collector)': 'garbage collection',
  '(program)': 'native code: system calls, sockets, hashes',
};
const IDLE = '(idle)';
const MOST = 12;

/**
 * Self time by package, Node.js module or feature of the service, highest first, as shares of the non-idle time.
 * @throws Error when the profile does not exist
 */
export function describeProfile(file: string): string[] {
  const profile = JSON.parse(readFileSync(file, 'utf8')) as CpuProfile;
  const maps = new Map<string, SourceMap | null>();
  const places = new Map(profile.nodes.map(({ id, callFrame }) => [id, placeOf(callFrame, maps)]));
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

function placeOf(frame: CallFrame, maps: Map<string, SourceMap | null>): string {
  const { functionName, url } = frame;
  if (functionName === IDLE) return IDLE;
  if (url === '') return OF_V8[functionName] ?? OF_V8['(program)']!;
  if (url.startsWith('node:'))
    return `Node.js ${url.replace('node:', '').replace('internal/', '').split('/')[0]!}`;
  const source = sourceOf(frame, maps);
  const packaged = /node_modules\/((?:@[^/]+\/)?[^/]+)\/(?!.*node_modules)/.exec(source);
  if (packaged) return packaged[1]!;
  const own = /\/(?:dist|src)\/([^/]+)(\/[^/]+)?/.exec(source);
  if (!own) return 'other';
  return own[1] === 'infra' ? `src/infra${own[2] ?? ''}` : `src/${own[1]!}`;
}

/** @returns the TypeScript file, or the compiled file if it has no source map */
function sourceOf({ url, lineNumber, columnNumber }: CallFrame, maps: Map<string, SourceMap | null>): string {
  if (!url.startsWith('file:')) return url;
  let map = maps.get(url);
  if (map === undefined) {
    const file = `${fileURLToPath(url)}.map`;
    map = existsSync(file) ? new SourceMap(JSON.parse(readFileSync(file, 'utf8')) as SourceMapPayload) : null;
    maps.set(url, map);
  }
  const entry = map?.findEntry(lineNumber, columnNumber);
  return entry && 'originalSource' in entry ? entry.originalSource : url;
}
