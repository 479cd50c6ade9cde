/** The channel of every queue and process of one deployment. */
export const SIGNAL_CHANNEL = 'partner_esim_work';

/** Says something to every process of the service that listens, this one included. Best effort: what is said may be lost. */
export interface SignalChannel {
  /** @throws Error of the server when it cannot be said */
  send(text: string): Promise<void>;
  /** Hears everything from now on, after a lost connection again; to be called once. */
  listen(heard: (text: string) => void): void;
  close(): Promise<void>;
}
