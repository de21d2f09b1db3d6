/** Whether a process of this machine that is recorded somewhere still runs. */
import { readdirSync, readFileSync } from 'node:fs'

/** Distinguishes a process from a later one with the same id. */
export interface ProcessMark {
  readonly pid: number
  /** Start time in ticks since boot; undefined where the system does not tell it. */
  readonly startedAt: string | undefined
}

export const markOf = (pid: number): ProcessMark => ({ pid, startedAt: statOf(pid)?.startedAt })

let own: ProcessMark | undefined

/** Of this process. Cached. */
export function ownMark(): ProcessMark {
  own ??= markOf(process.pid)
  return own
}

/** Whether the process still runs. Without a known start time, whether any process has its id. */
export function isAlive({ pid, startedAt }: ProcessMark): boolean {
  if (!processExists(pid)) return false
  const now = statOf(pid)?.startedAt
  return startedAt === undefined || now === undefined || startedAt === now
}

/** Signal 0 only checks; EPERM means that another user's process exists. */
export function processExists(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return !isZombie(pid)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/**
 * A killed process keeps its id until its parent reaps it, and in a container without an init nobody does: a service killed
 * with -9 then held its runs until its lease expired.
 */
const isZombie = (pid: number): boolean => /^[ZX]/.test(statOf(pid)?.state ?? '')

/**
 * Whether a process group has a running member. Zombies do not count where /proc shows them: they may never be reaped.
 */
export function groupIsAlive(leader: number): boolean {
  try {
    process.kill(-leader, 0)
  } catch {
    // No member; macOS answers EPERM for a group of zombies.
    return false
  }
  const members = pidsInProc()?.filter((pid) => statOf(pid)?.group === leader)
  return members === undefined || members.some((pid) => !isZombie(pid))
}

function pidsInProc(): readonly number[] | undefined {
  try {
    return readdirSync('/proc').map(Number).filter(Number.isInteger)
  } catch {
    return undefined
  }
}

interface Stat {
  readonly state: string
  readonly group: number
  readonly startedAt: string | undefined
}

/** From /proc, where it exists. The command's name may contain spaces and brackets, so it ends at the last `)`. */
function statOf(pid: number): Stat | undefined {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'latin1')
      .replace(/^.*\) /s, '')
      .split(' ')
    return { state: fields[0] ?? '', group: Number(fields[2]), startedAt: fields[19] }
  } catch {
    return undefined
  }
}
