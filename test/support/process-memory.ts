/** Peak memory of processes, measured by Linux. 0 on other systems. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'

const read = (path: string): string => {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    // The process has ended.
    return ''
  }
}

/** Returns the peak since the last `resetPeak`, in MiB. */
export const peakMiB = (pid: number): number =>
  Math.round(Number(/^VmHWM:\s+(\d+) kB/m.exec(read(`/proc/${pid}/status`))?.[1] ?? 0) / 1024)

export function resetPeak(pid: number): void {
  writeFileSync(`/proc/${pid}/clear_refs`, '5')
}

/** Returns the child processes of all threads of this process. */
export function childrenOf(pid: number): readonly number[] {
  try {
    return readdirSync(`/proc/${pid}/task`)
      .flatMap((thread) => read(`/proc/${pid}/task/${thread}/children`).trim().split(' '))
      .filter((child) => child !== '')
      .map(Number)
  } catch {
    return []
  }
}
