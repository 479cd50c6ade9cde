/** The channel of every queue and process of one deployment. */
export const SIGNAL_CHANNEL = 'partner_esim_work';

/** Between two tries to listen, milliseconds: each pause is twice the one before. */
export const FIRST_PAUSE_MS = 100;
export const LONGEST_PAUSE_MS = 5_000;

/** Says something to every process of the service that listens, this one included. Best effort: what is said may be lost. */
export interface SignalChannel {
  /** @throws Error of the server when it cannot be said */
  send(text: string): Promise<void>;
  /** Hears everything from now on, after a lost connection again; to be called once. */
  listen(heard: (text: string) => void): void;
  close(): Promise<void>;
}
