import { readFileSync } from 'node:fs'

/**
 * Whether a process is running. A killed process keeps its id until its parent reaps it, which never happens in a
 * container without an init. So an unreaped process counts as ended.
 */
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
