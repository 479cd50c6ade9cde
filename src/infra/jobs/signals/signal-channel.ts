/** The one channel for all queues and processes of a deployment. */
export const SIGNAL_CHANNEL = 'partner_esim_work';

/** Pauses between two attempts to listen, in milliseconds; each is twice the previous one. */
export const FIRST_PAUSE_MS = 100;
export const MAX_PAUSE_MS = 5_000;

/** Broadcasts to every listening process of the service, including this one. Best effort, so a message may be lost. */
export interface SignalChannel {
  /** @throws Error of the server when the message cannot be sent */
  send(text: string): Promise<void>;
  /** Receives every message from now on, even after a reconnect. Call it once. */
  listen(onMessage: (text: string) => void): void;
  close(): Promise<void>;
}
