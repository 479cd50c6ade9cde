/** A server that accepts connections, started by this process or adopted. */
export interface RunningServer {
  readonly port: number;
  /** Resolves with a short text when the server has ended, for whatever reason. */
  readonly ended: Promise<string>;
  stop(): Promise<void>;
}
