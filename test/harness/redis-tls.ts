import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

/** A private CA and a server certificate from it, as PEM files. */
export interface TestCertificates {
  readonly caFile: string;
  readonly ca: string;
  readonly certFile: string;
  readonly keyFile: string;
}

const EC_KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];

/**
 * Creates them with openssl, and creates the folder if needed.
 * @param names subject alternative names: `DNS:localhost,IP:127.0.0.1`
 */
export function makeCertificates(folder: string, names: string): TestCertificates {
  const file = (name: string): string => path.join(folder, name);
  const openssl = (...args: string[]): Buffer => execFileSync('openssl', args, { stdio: 'pipe' });
  mkdirSync(folder, { recursive: true });
  writeFileSync(file('names'), `subjectAltName=${names}\n`);
  const ca = ['-keyout', file('ca.key'), '-out', file('ca.crt'), '-days', '2', '-subj', '/CN=Test CA'];
  openssl('req', '-x509', ...EC_KEY, ...ca);
  openssl('req', ...EC_KEY, '-keyout', file('redis.key'), '-out', file('redis.csr'), '-subj', '/CN=redis');
  const signer = ['-CA', file('ca.crt'), '-CAkey', file('ca.key'), '-CAcreateserial', '-days', '2'];
  openssl(
    ...['x509', '-req', '-in', file('redis.csr'), '-out', file('redis.crt')],
    ...[...signer, '-extfile', file('names')],
  );
  return {
    caFile: file('ca.crt'),
    ca: readFileSync(file('ca.crt'), 'utf8'),
    certFile: file('redis.crt'),
    keyFile: file('redis.key'),
  };
}

/** Arguments of a redis-server on this port that uses TLS for incoming and outgoing connections. */
export function listenArguments(port: number, certificates: TestCertificates | null): readonly string[] {
  if (!certificates) return ['--port', String(port)];
  return [
    ...['--port', '0', '--tls-port', String(port), '--tls-auth-clients', 'no'],
    ...['--tls-cert-file', certificates.certFile, '--tls-key-file', certificates.keyFile],
    ...['--tls-ca-cert-file', certificates.caFile, '--tls-replication', 'yes'],
  ];
}
