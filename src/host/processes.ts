/** Whether a process group that this process has started still runs. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

/**
 * Whether a process group has a running member. Zombies do not count where /proc shows them: they may never be reaped, as in a
 * container without an init.
 */
export function groupIsAlive(leader: number): boolean {
  try {
    process.kill(-leader, 0)
  } catch {
    // No member; macOS answers EPERM for a group of zombies.
    return false
  }
  const members = pidsInProc()
    ?.flatMap((pid) => statOf(pid) ?? [])
    .filter(({ group }) => group === leader)
  return members === undefined || members.some(({ state }) => !/^[ZX]/.test(state))
}

/** Undefined where there is no /proc, and where it is that of other process ids: a container may see that of its host. */
function pidsInProc(): readonly number[] | undefined {
  try {
    if (readlinkSync('/proc/self') !== String(process.pid)) return undefined
    return readdirSync('/proc').map(Number).filter(Number.isInteger)
  } catch {
    return undefined
  }
}

interface Stat {
  readonly state: string
  readonly group: number
}

/** From /proc, where it exists. The command's name may contain spaces and brackets, so it ends at the last `)`. */
function statOf(pid: number): Stat | undefined {
  try {
    const [state = '', , group] = readFileSync(`/proc/${pid}/stat`, 'latin1')
      .replace(/^.*\) /s, '')
      .split(' ')
    return { state, group: Number(group) }
  } catch {
    return undefined
  }
}
