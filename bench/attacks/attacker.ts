import { ChildLink } from '../child-link.js';

/** Ways in which one caller took the service away from all others, by what the attacker does. */
export const ATTACKS = {
  'addresses with a zone': 'anonymous calls from fe80::n%eth0 behind a proxy',
  'hanging endpoints':
    '140 endpoints of 7 partners that take a connection and never answer, all slots wanted',
  'costly TLS': 'ten endpoints that want a Diffie-Hellman group of 8,192 bits before they show a certificate',
  'list flood': 'lists with filters of a partner that owns a third of all orders',
  'callers that never read': '60 connections that ask for 200 pages of the catalogue and take none',
  'QR burst': 'QR codes of eSIMs that none was drawn for',
  'catalogue cache': 'pages of the catalogue with free values in their filters',
  'catalogues of many': 'the catalogue in turn by 250 live partners, more than are kept',
  'sandbox flood': 'Sandbox orders of one partner',
  'feed by a rare type': 'the whole feed again and again, by a type that it hardly has',
  'metrics scraping': '/metrics of the API and of the worker',
  'refused calls': 'calls of a known key from an address that it does not allow',
} as const;
export type AttackName = keyof typeof ATTACKS;

/** A second: far below what would fill a core, for an attack is to hold things up, not to take the machine. */
export const RATES: Readonly<Record<AttackName, number>> = {
  'addresses with a zone': 60,
  'hanging endpoints': 7,
  'costly TLS': 10,
  'list flood': 30,
  'callers that never read': 4,
  'QR burst': 20,
  'catalogue cache': 30,
  'catalogues of many': 50,
  'sandbox flood': 20,
  'feed by a rare type': 30,
  'metrics scraping': 5,
  'refused calls': 60,
};

export interface AttackerSettings {
  readonly apiUrl: string;
  readonly metricsUrls: readonly string[];
  /** A partner of its own. */
  readonly key: string;
  /** Of the partner that owns a third of what is filled in; live. */
  readonly bigKey: string;
  /** Of the partners that read the catalogue in turn; live. */
  readonly manyKeys: readonly string[];
  /** Of the seven partners whose endpoints hang. */
  readonly hangingKeys: readonly string[];
  /** Of the partner whose endpoints are costly to connect to. */
  readonly costlyKey: string;
  /** Allows no address that the attacker has. */
  readonly refusedKey: string;
}

export type AttackerQuestion =
  | ({ readonly do: 'open' } & AttackerSettings)
  | { readonly do: 'begin'; readonly attack: AttackName }
  | { readonly do: 'end' };

export interface AttackReport {
  /** Answers by status or kind of failure. */
  readonly answers: Readonly<Record<string, number>>;
  /** Cores that the attacker itself took. */
  readonly cpu: number;
}

/** Where the attacker's endpoints are. */
export interface AttackerUrls {
  readonly hangingUrl: string;
  readonly costlyUrl: string;
}

/** Whoever attacks, in a process of its own: on the event loop of those who measure it would slow the clock, not the service. */
export class Attacker {
  private readonly link = ChildLink.start<AttackerQuestion, AttackReport & Partial<AttackerUrls>>(
    new URL('./attacker.child.js', import.meta.url),
  );

  async open(settings: AttackerSettings): Promise<AttackerUrls> {
    const { hangingUrl, costlyUrl } = await this.link.ask({ do: 'open', ...settings });
    return { hangingUrl: hangingUrl!, costlyUrl: costlyUrl! };
  }

  async begin(attack: AttackName): Promise<void> {
    await this.link.ask({ do: 'begin', attack });
  }

  end(): Promise<AttackReport> {
    return this.link.ask({ do: 'end' });
  }

  stop(): Promise<void> {
    return this.link.stop();
  }
}
