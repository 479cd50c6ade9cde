import { NodeChild } from '../harness/child-process.js';
import { eventually } from '../harness/index.js';

/** A provider's simulator as a process of its own, told what to do over HTTP. */
export class SimulatorProcess {
  private constructor(
    private readonly child: NodeChild,
    readonly url: string,
  ) {}

  static async start(args: readonly string[]): Promise<SimulatorProcess> {
    const child = NodeChild.launch({ args: [...args, '--port', '0'], env: {} });
    const port = await eventually('the port of the simulator', () => {
      if (!child.running) throw new Error(`the simulator ended: ${child.stderr}`);
      return /^\{"port":(\d+)\}$/m.exec(child.stdout)?.[1];
    });
    return new SimulatorProcess(child, `http://127.0.0.1:${port}`);
  }

  async control(body: object): Promise<void> {
    const answer = await fetch(`${this.url}/__control`, { method: 'POST', body: JSON.stringify(body) });
    if (!answer.ok) throw new Error(`control: ${answer.status} ${await answer.text()}`);
    await answer.arrayBuffer();
  }

  async state<T>(): Promise<T> {
    return (await (await fetch(`${this.url}/__state`)).json()) as T;
  }

  close(): Promise<void> {
    return this.child.kill();
  }
}
