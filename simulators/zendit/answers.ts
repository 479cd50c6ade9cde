import type { ServerResponse } from 'node:http';
import type { ErrorBody } from './contract.ts';
import type { Faults } from './faults.ts';

const HUGE_BYTES = 16 * 1_048_576;

export function sendJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json; charset=utf-8' });
  response.end(JSON.stringify(body));
}

export function sendError(
  response: ServerResponse,
  status: number,
  body: ErrorBody,
  headers: Readonly<Record<string, string>> = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json; charset=utf-8', ...headers });
  response.end(JSON.stringify(body));
}

/** A JSON body, or an image. */
export function sendReply(response: ServerResponse, status: number, body: unknown): void {
  if (!Buffer.isBuffer(body)) return sendJson(response, status, body);
  response.writeHead(status, { 'content-type': 'image/png' });
  response.end(body);
}

/** An arbitrary number that is not an HTTP status. */
const NUMERIC_CODE = 10_042;

/** Replaces the code in the body of an error, or of a failed transaction, by a number. */
export function withNumericCodes(body: unknown): unknown {
  if (typeof body !== 'object' || body === null || Array.isArray(body) || Buffer.isBuffer(body)) return body;
  const { error } = body as { readonly error?: object };
  return {
    ...body,
    ...('errorCode' in body ? { errorCode: NUMERIC_CODE } : {}),
    ...(error === undefined ? {} : { error: { ...error, code: NUMERIC_CODE } }),
  };
}

/** Sends a 200 that violates the contract. */
export function sendBadAnswer(response: ServerResponse, kind: Faults['badAnswer']): void {
  switch (kind) {
    case 'html':
      response.writeHead(200, { 'content-type': 'text/html' });
      return void response.end('<html><body><h1>Just a moment...</h1></body></html>');
    case 'truncated':
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': '4000' });
      response.write('{"status":"ACCEPTED","transac');
      return void setImmediate(() => response.destroy());
    case 'huge':
      response.writeHead(200, { 'content-type': 'application/json' });
      return void response.end(`{"padding":"${'x'.repeat(HUGE_BYTES)}"}`);
    case 'empty':
      response.writeHead(200, { 'content-type': 'application/json' });
      return void response.end();
    case 'wrongShape':
      return sendJson(response, 200, { status: 7, transactionId: null, list: {}, total: 'many' });
  }
}
