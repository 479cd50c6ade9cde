import { once } from 'node:events';
import { createSecureServer } from 'node:http2';
import type { AddressInfo, Socket } from 'node:net';
import type { SecureVersion } from 'node:tls';
import type { ServerIdentity } from '../webhooks/sending/certificates.js';

export interface TlsProvider {
  readonly url: string;
  /** Bodies of complete requests. */
  readonly taken: readonly string[];
  close(): Promise<unknown>;
}

export interface TlsProviderOptions {
  readonly version?: SecureVersion;
  /** Raw bytes to write to the TCP socket, below TLS, after reading a request. The request gets no response. */
  readonly breakWith?: Buffer;
  /** Refuses clients without a certificate. With TLS 1.3 they have already sent their request. */
  readonly wantsClientCertificate?: boolean;
}

/** A TLS record that no key can decrypt. */
export const FOREIGN_RECORD = Buffer.concat([Buffer.from([23, 3, 3, 0, 40]), Buffer.alloc(40, 7)]);
/** A plain HTTP response of a broken proxy, written into a TLS connection. */
export const PLAIN_ANSWER = Buffer.from('HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n');

/**
 * A provider behind TLS, which may break the connection after the request. It supports HTTP/2 if the client offers it.
 */
export async function startTlsProvider(
  identity: ServerIdentity,
  { version = 'TLSv1.3', breakWith, wantsClientCertificate = false }: TlsProviderOptions = {},
): Promise<TlsProvider> {
  const taken: string[] = [];
  const sockets: Socket[] = [];
  const server = createSecureServer(
    {
      ...identity,
      allowHTTP1: true,
      minVersion: version,
      maxVersion: version,
      requestCert: wantsClientCertificate,
      rejectUnauthorized: wantsClientCertificate,
    },
    (request, response) => {
      let body = '';
      request.setEncoding('utf8').on('data', (chunk) => (body += String(chunk)));
      request.on('error', () => undefined);
      response.on('error', () => undefined);
      request.on('end', () => {
        taken.push(body);
        if (breakWith) sockets.at(-1)?.write(breakWith);
        else response.end('{}');
      });
    },
  );
  server.on('connection', (socket: Socket) => sockets.push(socket));
  for (const failure of ['tlsClientError', 'sessionError']) server.on(failure, () => undefined);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    url: `https://localhost:${(server.address() as AddressInfo).port}`,
    taken,
    close: () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      return once(server, 'close');
    },
  };
}
