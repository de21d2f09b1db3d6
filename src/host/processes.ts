/** Whether a process that is recorded somewhere still runs. */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

/** Distinguishes a process from a later one with the same id, and from one of another container with the same id. */
export interface ProcessMark {
  readonly pid: number
  /** Start time in ticks since boot; undefined where the system does not tell it. */
  readonly startedAt: string | undefined
  /** Of `machineHash`; undefined where there is none, and in records of earlier versions: it ran on this machine. */
  readonly machine?: string | undefined
}

export const markOf = (pid: number): ProcessMark => ({
  pid,
  startedAt: statOf(pid)?.startedAt,
  machine: machineHash(),
})

let own: ProcessMark | undefined

/** Of this process. Cached. */
export function ownMark(): ProcessMark {
  own ??= markOf(process.pid)
  return own
}

/** Start time and machine in one text, without spaces: `4711@1f0e9a3c`. Undefined when both are unknown. */
export const startText = ({ startedAt, machine }: ProcessMark): string | undefined =>
  machine === undefined ? startedAt : `${startedAt ?? ''}@${machine}`

/** The mark of a process id and what `startText` returned. */
export function markFrom(pid: number, start: string | undefined): ProcessMark {
  const [startedAt, machine] = start?.split('@') ?? []
  return { pid, startedAt: startedAt || undefined, machine }
}

/** A process that cannot be seen from here is taken to run until it has shown no sign of life for this long. */
const UNSEEN_MS = 300_000

/**
 * Whether the process still runs. Without a known start time, whether any process has its id. Where the id belongs to another
 * container, or to another boot, `silentMs` decides: the time since the process was last known to run. Where that is far in the
 * future, the clock was set back, and nothing is known of the process.
 */
export function isAlive({ pid, startedAt, machine }: ProcessMark, silentMs: number): boolean {
  if (machine !== undefined && machine !== machineHash()) return Math.abs(silentMs) < UNSEEN_MS
  if (!processExists(pid)) return false
  const now = statOf(pid)?.startedAt
  return startedAt === undefined || now === undefined || startedAt === now
}

let machineKnown: string | undefined

/**
 * The boot, and the namespace of process ids: an id means something only within both. Containers that share a volume have
 * different namespaces. Empty where there is no /proc. Cached.
 */
export function machineId(): string {
  machineKnown ??= `${bootId()} ${textFrom(() => readlinkSync('/proc/self/ns/pid'))}`.trim()
  return machineKnown
}

const bootId = (): string => textFrom(() => readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim())

function textFrom(read: () => string): string {
  try {
    return read()
  } catch {
    return ''
  }
}

/** Short, for records. */
const machineHash = (): string | undefined => hashOf(machineId())

let bootKnown: { readonly hash: string | undefined } | undefined

/** Identifies the boot of this machine; undefined where the system does not tell it. Cached. */
export function bootHash(): string | undefined {
  bootKnown ??= { hash: hashOf(bootId()) }
  return bootKnown.hash
}

const hashOf = (id: string): string | undefined =>
  id === '' ? undefined : createHash('sha256').update(id).digest('hex').slice(0, 8)

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
