/** Neighbours on this machine: whether the process that left a mark somewhere is still there. */
import { readdirSync, readFileSync } from 'node:fs'

/** A process, told apart from a later one that was given the same number. */
export interface ProcessMark {
  readonly pid: number
  /** When it began, in the system's own ticks since boot; undefined where the system does not say. */
  readonly startedAt: string | undefined
}

export const markOf = (pid: number): ProcessMark => ({ pid, startedAt: statOf(pid)?.startedAt })

let own: ProcessMark | undefined

/** Of this process: asked once. */
export function ownMark(): ProcessMark {
  own ??= markOf(process.pid)
  return own
}

/** Whether the process is still there. One whose start is not known is taken for alive while its number is in use. */
export function isAlive({ pid, startedAt }: ProcessMark): boolean {
  if (!processExists(pid)) return false
  const now = statOf(pid)?.startedAt
  return startedAt === undefined || now === undefined || startedAt === now
}

/** Signal 0 asks and does nothing; a process of somebody else's exists too. */
export function processExists(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return !isZombie(pid)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/**
 * A process that was killed keeps its number until its parent asks after it, and in a container without an init nobody
 * ever does: seen here, where a service killed with -9 held its runs until the lease ended.
 */
const isZombie = (pid: number): boolean => /^[ZX]/.test(statOf(pid)?.state ?? '')

/**
 * Whether a process group has a member that lives. Zombies do not count, where /proc tells them apart: nobody may ever
 * ask after them.
 */
export function groupIsAlive(leader: number): boolean {
  try {
    process.kill(-leader, 0)
  } catch {
    // Nobody is there; macOS says EPERM of a group that holds nothing but zombies.
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

/** From /proc, where there is one. The name of the command may hold spaces and brackets: the last `)` ends it. */
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
