import { freePort } from '../../chaos/free-port.js';
import {
  createTestDatabase,
  startTestService,
  type TestDatabase,
  type TestService,
} from '../harness/index.js';

export const ROLES = ['api', 'admin', 'portal', 'install', 'worker'] as const;
export type RoleApart = (typeof ROLES)[number];

/** One sample of `/metrics`, without the label `role`. */
export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** The metrics of one role. */
export interface Scrape {
  readonly status: number;
  readonly text: string;
  /** Names for queries: those of `# TYPE`, plus the suffixed names of histograms. */
  readonly names: ReadonlySet<string>;
  readonly samples: readonly Sample[];
}

/** Separate roles as in production, each with its own listener for probes and metrics, on one database. */
export class RolesApart {
  private constructor(
    readonly database: TestDatabase,
    private readonly services: ReadonlyMap<RoleApart, TestService>,
    private readonly opsUrls: ReadonlyMap<RoleApart, string>,
  ) {}

  static async start(env: Record<string, string> = {}): Promise<RolesApart> {
    const database = await createTestDatabase();
    const services = new Map<RoleApart, TestService>();
    const opsUrls = new Map<RoleApart, string>();
    for (const role of ROLES) {
      const port = String(await freePort());
      services.set(role, await startTestService({ role, database, env: { ...env, OPS_PORT: port } }));
      opsUrls.set(role, `http://127.0.0.1:${port}`);
    }
    return new RolesApart(database, services, opsUrls);
  }

  service(role: RoleApart): TestService {
    return this.services.get(role)!;
  }

  async scrape(role: RoleApart): Promise<Scrape> {
    const answer = await fetch(`${this.opsUrls.get(role)!}/metrics`, { signal: AbortSignal.timeout(20_000) });
    const text = await answer.text();
    return { status: answer.status, text, names: namesIn(text), samples: samplesIn(text) };
  }

  async stop(): Promise<void> {
    for (const service of this.services.values()) await service.stop();
    await this.database.drop();
  }
}

function namesIn(text: string): ReadonlySet<string> {
  const names = new Set<string>();
  for (const [, name, type] of text.matchAll(/^# TYPE (\S+) (\S+)$/gm)) {
    names.add(name!);
    if (type === 'histogram') for (const part of ['bucket', 'sum', 'count']) names.add(`${name}_${part}`);
  }
  return names;
}

function samplesIn(text: string): readonly Sample[] {
  return text
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => {
      const [, name, labels = '', value] = /^([a-zA-Z_:]\w*)(?:\{(.*)\})? (\S+)$/.exec(line)!;
      const pairs = [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, key, text]) => [key, text]);
      const { role: _role, ...others } = Object.fromEntries(pairs) as Record<string, string>;
      return { name: name!, labels: others, value: Number(value) };
    });
}
