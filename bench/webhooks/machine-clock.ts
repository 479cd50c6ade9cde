/** Milliseconds of a clock that all processes of the machine share and that nobody sets (CLOCK_MONOTONIC). */
export function machineNowMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
