import { usageError } from './exit-codes.js';

/**
 * Normalizes a base URL: lower-case host, no default port, no trailing slash, and no `/v1`, which the banner of a local
 * service prints.
 * @throws CliError for anything but an http or https URL
 */
export function baseUrlOf(text: string): string {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol))
    throw usageError(
      'the base URL does not start with http:// or https://',
      'Set --base-url or ESIM_BASE_URL to the address of the API, for example https://api.example.com.',
    );
  return `${url.origin}${url.pathname.replace(/\/+$/, '').replace(/\/v1$/, '')}`;
}

/** @returns whether requests to this URL stay on this machine */
export function isLoopback(baseUrl: string): boolean {
  const { hostname } = new URL(baseUrl);
  return hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d{1,3}){3}$/.test(hostname);
}
