import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

export interface ServerIdentity {
  readonly key: string;
  readonly cert: string;
}

export interface LeafOptions {
  readonly names?: readonly string[];
  /** A negative number creates an expired certificate. */
  readonly days?: number;
  readonly key?: 'ec' | 'rsa';
}

/** A certificate authority for one test. `openssl` creates its keys at run time. */
export class TestAuthority {
  /** PEM. */
  readonly certificate: string;
  private readonly folder = mkdtempSync(path.join(tmpdir(), 'esim-tls-'));
  private issued = 0;

  constructor() {
    const root = ['-keyout', 'ca.key', '-out', 'ca.pem', '-subj', '/CN=Test Authority', '-days', '1'];
    this.openssl('req', '-x509', ...NEW_KEY, ...root);
    this.certificate = this.read('ca.pem');
  }

  /** A key with a certificate of this authority. */
  issue({ names = ['localhost'], days = 1, key = 'ec' }: LeafOptions = {}): ServerIdentity {
    const leaf = `leaf${++this.issued}`;
    this.openssl(
      'req',
      ...(key === 'ec' ? NEW_KEY : NEW_RSA_KEY),
      '-keyout',
      `${leaf}.key`,
      '-out',
      `${leaf}.csr`,
      '-subj',
      '/CN=leaf',
    );
    const extensions = `subjectAltName=${names.map((name) => `DNS:${name}`).join()}\n`;
    writeFileSync(path.join(this.folder, `${leaf}.ext`), extensions);
    const authority = ['-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial'];
    const output = ['-days', String(days), '-extfile', `${leaf}.ext`, '-out', `${leaf}.pem`];
    this.openssl('x509', '-req', '-in', `${leaf}.csr`, ...authority, ...output);
    return { key: this.read(`${leaf}.key`), cert: this.read(`${leaf}.pem`) };
  }

  /** A key with a self-signed certificate. */
  selfSigned(): ServerIdentity {
    const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost', '-days', '1'];
    this.openssl('req', '-x509', ...NEW_KEY, '-keyout', 'self.key', '-out', 'self.pem', ...subject);
    return { key: this.read('self.key'), cert: this.read('self.pem') };
  }

  /** The certificate of an untrusted authority whose name has this many parts of 64 characters. */
  named(parts: number): string {
    const subject = Array.from({ length: parts }, () => `/OU=${'x'.repeat(64)}`).join('');
    this.openssl('req', '-x509', ...NEW_KEY, '-keyout', 'named.key', '-out', 'named.pem', '-subj', subject);
    return this.read('named.pem');
  }

  /**
   * A certificate and its chain up to an untrusted root, all signed with one key.
   * @param key PEM
   */
  costlyChain(key: string, length: number): ServerIdentity {
    writeFileSync(path.join(this.folder, 'costly.key'), key);
    this.openssl('pkey', '-in', 'costly.key', '-pubout', '-out', 'costly.pub');
    const names = Array.from({ length }, (_, place) => `costly${place}.pem`);
    names.forEach((name, place) => {
      const above =
        place === 0 ? ['-key', 'costly.key'] : ['-force_pubkey', 'costly.pub', '-CAkey', 'costly.key'];
      const issuer = place === 0 ? [] : ['-CA', names[place - 1]!];
      this.openssl('x509', '-new', ...above, ...issuer, '-subj', `/CN=${place}`, '-days', '1', '-out', name);
    });
    return {
      key,
      cert: names
        .toReversed()
        .map((name) => this.read(name))
        .join(''),
    };
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }

  private openssl(...args: string[]): void {
    execFileSync('openssl', args, { cwd: this.folder, stdio: 'pipe' });
  }

  private read(file: string): string {
    return readFileSync(path.join(this.folder, file), 'utf8');
  }
}

const NEW_RSA_KEY = ['-newkey', 'rsa:2048', '-nodes'];
const NEW_KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
