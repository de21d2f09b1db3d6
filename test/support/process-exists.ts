import { readFileSync } from 'node:fs'

/** A killed process keeps its id until its parent reaps it, and no process does in a container without an init: it counts as ended. */
export function processExists(pid: number): boolean {
  try {
    process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
  try {
    return !/^[ZX]/.test(readFileSync(`/proc/${pid}/stat`, 'latin1').replace(/^.*\) /s, ''))
  } catch {
    return true
  }
}
