/** A device by its ways to install an eSIM. */
export type DeviceKind =
  /** iOS 17.4 and newer open an installation link. */
  | 'apple'
  /** Newer Android phones open an installation link; on the others the traveler enters the code. */
  | 'android'
  /** A phone without installation links. */
  | 'phone'
  /** A computer: a phone scans its screen. */
  | 'screen';

export interface Device {
  readonly kind: DeviceKind;
  /** The name on an Apple device's button. */
  readonly name: 'iPhone' | 'iPad';
}

/** The first version of iOS whose installation links install an eSIM. */
const LINKS_SINCE = [17, 4] as const;
const APPLE = /\b(iPhone|iPad|iPod)\b/;
const IOS_VERSION = /\bOS (\d+)(?:_(\d+))?/;

/** The visitor's device by its user agent. An iPad that asks for desktop pages counts as a computer. */
export function deviceOf(userAgent: string): Device {
  const apple = APPLE.exec(userAgent);
  const name = apple?.[1] === 'iPad' ? 'iPad' : 'iPhone';
  // Windows Phone also names iPhone and Android.
  if (/Windows Phone|IEMobile/.test(userAgent)) return { kind: 'phone', name };
  if (apple) return { kind: opensLinks(userAgent) ? 'apple' : 'phone', name };
  if (/\bAndroid\b/.test(userAgent)) return { kind: 'android', name };
  return { kind: /\bMobile\b|OpenHarmony/.test(userAgent) ? 'phone' : 'screen', name };
}

function opensLinks(userAgent: string): boolean {
  const [, major, minor = '0'] = IOS_VERSION.exec(userAgent) ?? [];
  if (major === undefined) return false;
  const [sinceMajor, sinceMinor] = LINKS_SINCE;
  return Number(major) > sinceMajor || (Number(major) === sinceMajor && Number(minor) >= sinceMinor);
}

/** Cubot is a brand of phones. */
const PREVIEWS =
  /(?<!cu)bot\b|crawl|spider|preview|externalhit|facebookcatalog|WhatsApp\/|Snapchat\/.*Preview|embedly|Iframely|vkShare|Google-|HeadlessChrome/i;

/** Whether a browser probably asks for the page, and not a messenger's link preview or another program. */
export function isPerson(userAgent = ''): boolean {
  // Opera Mini calls itself Opera.
  return /^(Mozilla|Opera)\//.test(userAgent) && !PREVIEWS.test(userAgent);
}

/** Whether a browser loads the page in advance. It may show that page later, so the page must be complete. */
export function isPrefetch(headers: Readonly<Record<string, string | string[] | undefined>>): boolean {
  return `${String(headers['sec-purpose'])} ${String(headers['purpose'])}`.includes('prefetch');
}
