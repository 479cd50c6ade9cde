import { createHmac, randomUUID } from 'node:crypto';

export interface EsimAccessCredentials {
  readonly accessCode: string;
  readonly secretKey: string;
}

export interface SignedRequest extends EsimAccessCredentials {
  /** Unix time in milliseconds, as text. */
  readonly timestamp: string;
  readonly requestId: string;
  /** The very bytes that are sent. */
  readonly body: string;
}

/** Lower-case hex HMAC-SHA256 over timestamp, request id, access code and raw body (docs/providers.md). */
export function signEsimAccessRequest(request: SignedRequest): string {
  return createHmac('sha256', request.secretKey)
    .update(request.timestamp + request.requestId + request.accessCode + request.body)
    .digest('hex');
}

/** Headers of a signed call that leaves now. */
export function signedHeaders(credentials: EsimAccessCredentials, body: string): Record<string, string> {
  const timestamp = String(Date.now());
  const requestId = randomUUID();
  return {
    'content-type': 'application/json',
    'RT-AccessCode': credentials.accessCode,
    'RT-RequestID': requestId,
    'RT-Timestamp': timestamp,
    'RT-Signature': signEsimAccessRequest({ ...credentials, timestamp, requestId, body }),
  };
}
