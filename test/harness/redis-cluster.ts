import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Redis, RedisOptions } from 'ioredis';
import { eventually } from './eventually.js';
import { freePort } from './free-port.js';
import { answers, askRedis, MEMORY_ONLY, ON_LOOPBACK, RedisProcess } from './redis.js';
import { listenArguments, type TestCertificates } from './redis-tls.js';

const SLOTS = 16_384;
const PRIMARIES = 3;
/** After this a node counts as dead, and its replica takes over. */
const NODE_TIMEOUT_MS = 1_500;

export interface ClusterOptions {
  /** How many replicas the primary has that holds this key. */
  readonly replicas?: { readonly of: string; readonly count: number };
  readonly certificates?: TestCertificates;
}

export interface ClusterNode {
  readonly port: number;
  readonly busPort: number;
  readonly server: RedisProcess;
}

/** Three primaries, with a password; its nodes tell clients their name, and no address. */
export class ClusterSetup {
  readonly password = `p@s/s:+%${randomBytes(9).toString('hex')}`;
  private readonly folder = mkdtempSync(path.join(tmpdir(), 'esim-cluster-'));
  private readonly started: ClusterNode[] = [];
  /** Without those that were lost. */
  private readonly nodes: ClusterNode[] = [];

  private constructor(private readonly certificates: TestCertificates | null) {}

  static async start({ replicas, certificates }: ClusterOptions = {}): Promise<ClusterSetup> {
    const setup = new ClusterSetup(certificates ?? null);
    try {
      const count = replicas?.count ?? 0;
      for (let nth = 0; nth < PRIMARIES + count; nth++) await setup.startNode();
      await setup.join();
      if (replicas) await setup.replicate(replicas.of, count);
      return setup;
    } catch (error) {
      await setup.stop();
      throw error;
    }
  }

  /** As `REDIS_URL` takes it; the first node is left out: the others name it. */
  get url(): string {
    const nodes = this.nodes.slice(1).map(({ port }) => `localhost:${port}`);
    const scheme = this.certificates ? 'rediss' : 'redis';
    return `${scheme}+cluster://:${encodeURIComponent(this.password)}@${nodes.join(',')}`;
  }

  /** Asks every node that was not lost. */
  askAll<T>(question: (client: Redis) => Promise<T>): Promise<readonly T[]> {
    return Promise.all(this.nodes.map(({ port }) => askRedis(this.optionsOf(port), question)));
  }

  /** The primary of the key's slot; null while there is none. */
  async holderOf(key: string): Promise<ClusterNode | null> {
    const slot = Number(await this.call(this.nodes[0]!.port, 'KEYSLOT', key));
    const views = await this.askAll((client) => client.cluster('NODES'));
    return this.nodes.find((_, nth) => isHolder(String(views[nth]), slot)) ?? null;
  }

  /** Kills a node, or lets it freeze with all its connections. */
  async lose(node: ClusterNode, signal: 'SIGKILL' | 'SIGSTOP'): Promise<void> {
    this.nodes.splice(this.nodes.indexOf(node), 1);
    if (signal === 'SIGKILL') await node.server.kill();
    else node.server.freeze();
  }

  async stop(): Promise<void> {
    await Promise.all(this.started.map(({ server }) => server.kill()));
    rmSync(this.folder, { recursive: true, force: true });
  }

  private async startNode(): Promise<void> {
    const [port, busPort] = [await freePort(), await freePort()];
    const server = RedisProcess.launch([
      ...listenArguments(port, this.certificates),
      ...[...ON_LOOPBACK, ...MEMORY_ONLY, '--dir', this.folder, '--repl-diskless-sync-delay', '0'],
      ...['--requirepass', this.password, '--masterauth', this.password],
      ...['--cluster-enabled', 'yes', '--cluster-port', String(busPort)],
      ...['--cluster-config-file', `nodes-${port}.conf`, '--cluster-node-timeout', String(NODE_TIMEOUT_MS)],
      ...['--cluster-announce-hostname', 'localhost', '--cluster-preferred-endpoint-type', 'hostname'],
    ]);
    const node = { port, busPort, server };
    this.started.push(node);
    this.nodes.push(node);
    await eventually('the node answers', () => answers(this.optionsOf(port)));
  }

  /** As `redis-cli --cluster create` does it, without its waits. */
  private async join(): Promise<void> {
    for (const [nth, { port }] of this.nodes.entries()) {
      await this.call(port, 'SET-CONFIG-EPOCH', nth + 1);
      if (nth >= PRIMARIES) continue;
      const [from, to] = [nth, nth + 1].map((part) => Math.ceil((part * SLOTS) / PRIMARIES));
      await this.call(port, 'ADDSLOTSRANGE', from!, to! - 1);
    }
    const [first, ...others] = this.nodes;
    for (const { port, busPort } of others) await this.call(first!.port, 'MEET', '127.0.0.1', port, busPort);
    await eventually('all nodes know each other', async () => {
      const infos = await Promise.all(this.nodes.map(({ port }) => this.call(port, 'INFO')));
      const whole = ['cluster_state:ok', `cluster_known_nodes:${this.nodes.length}`];
      return infos.every((info) => whole.every((line) => String(info).includes(`${line}\r\n`)));
    });
  }

  private async replicate(key: string, count: number): Promise<void> {
    const holder = await this.holderOf(key);
    const id = String(await this.call(holder!.port, 'MYID'));
    for (const { port } of this.nodes.slice(PRIMARIES)) await this.call(port, 'REPLICATE', id);
    await eventually('the replicas follow, and all nodes know', async () => {
      const links = await this.askAll((client) => client.info('replication'));
      const views = await this.askAll((client) => client.cluster('SLOTS'));
      // A range is its first and its last slot, and a node for the primary and for each replica.
      const seen = views.every((ranges) => ranges.some((range) => range.length === 3 + count));
      return links.filter((link) => link.includes('master_link_status:up')).length === count && seen;
    });
  }

  private call(port: number, ...command: readonly (string | number)[]): Promise<unknown> {
    return askRedis(this.optionsOf(port), (client) => client.call('CLUSTER', [...command]));
  }

  private optionsOf(port: number): RedisOptions {
    const { certificates, password } = this;
    return {
      port,
      password,
      ...(certificates && { tls: { ca: certificates.ca, servername: 'localhost' } }),
    };
  }
}

/** @param view what a node says of all nodes, itself marked: a line of eight fields, then its ranges of slots */
function isHolder(view: string, slot: number): boolean {
  const own = view.split('\n').find((line) => line.includes('myself,master')) ?? '';
  return own
    .split(' ')
    .slice(8)
    .map((range) => range.split('-').map(Number))
    .some(([from = SLOTS, to = from]) => from <= slot && slot <= to);
}
