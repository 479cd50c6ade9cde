/** The portal team's return address, with the reason. Null when the session has no valid one. */
export function returnAddress(returnUrl: string | null | undefined, reason?: 'step_up'): string | null {
  if (!returnUrl || !URL.canParse(returnUrl)) return null;
  const address = new URL(returnUrl);
  if (address.protocol !== 'https:' && address.protocol !== 'http:') return null;
  if (reason) address.searchParams.set('reason', reason);
  return address.href;
}
