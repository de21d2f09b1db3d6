/**
 * Proof that a process runs, or has ended: it holds an operating system's lock on an empty file, which the system
 * releases when the process ends in any way. A process id proves nothing: it is reused, and two containers may
 * share a folder and have the same ids, host name and boot.
 *
 * The locks are SQLite's and lie beside the databases whose rows they are about, so they are as good as those of
 * the databases themselves. Nothing else may open such a file: closing it would release the lock of the whole
 * process.
 */

import { randomBytes } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, readlinkSync, rmSync, statSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { connect, createPrivately, type SqliteConnection, withDatabase } from './database-file.js'
import { errorCode } from './system-error.js'

export interface HeldLock {
  /** The file stays, and shows that its holder has ended. */
  release(): void
  /** Nothing names it anymore: removes the file. */
  remove(): void
}

/** Another process may be looking at the lock. */
const BUSY_MS = 100

/** Undefined where it cannot be taken: other processes then cannot tell whether this one runs. */
export function takeLock(path: string): HeldLock | undefined {
  let database: SqliteConnection | undefined
  try {
    createPrivately(path)
    database = connect(path)
    // Nothing is written, so there is no second file.
    database.exec(`PRAGMA busy_timeout = ${BUSY_MS}; PRAGMA journal_mode = OFF; BEGIN EXCLUSIVE`)
  } catch {
    database?.close()
    // A free one would prove that this process has ended.
    removeLock(path)
    return undefined
  }
  const held = database
  return {
    release: () => held.close(),
    remove() {
      removeLock(path)
      held.close()
      // Windows removes no file that is open.
      if (process.platform === 'win32') removeLock(path)
    },
  }
}

/** Whether its holder runs; undefined where nothing proves it: there is no such file, or it cannot be read. */
export function isLocked(path: string): boolean | undefined {
  if (!existsSync(path)) return undefined
  try {
    // It must not create a file that its holder has just removed.
    withDatabase(`${pathToFileURL(path).href}?mode=ro`, 0, (database) =>
      database.exec('SELECT 1 FROM sqlite_schema'),
    )
    return false
  } catch (error) {
    return errorCode(error) === 'SQLITE_BUSY' ? true : undefined
  }
}

/** Does nothing where it cannot be removed. */
export function removeLock(path: string): void {
  try {
    rmSync(path, { force: true })
  } catch {
    // It is empty, and is looked at again.
  }
}

/** Below the folder of the databases. */
export const locksFolder = (folder: string): string => join(folder, 'processes')

/** Of this process, for its records. */
export interface ProcessLock {
  /** 16 hexadecimal digits. Takes the lock when it is first asked for. */
  readonly id: string
  /** As it was given. */
  readonly folder: string
  /**
   * Ends the lock. `isNamed`: records that name it are left, so its file stays and shows that the process has
   * ended.
   */
  end(isNamed?: boolean): void
}

/** Of a process that holds no lock too: then nothing is proven of it. */
export const newId = (): string => randomBytes(8).toString('hex')

export function processLockIn(folder: string): ProcessLock {
  let id: string | undefined
  let lock: HeldLock | undefined
  return {
    folder,
    get id() {
      if (id === undefined) {
        id = newId()
        lock = takeLock(join(locksFolder(folder), id))
        removeOldLocks(locksFolder(folder))
      }
      return id
    },
    end(isNamed = false) {
      if (isNamed) lock?.release()
      else lock?.remove()
      id = undefined
      lock = undefined
    },
  }
}

/** Whether the process with this id is taken to run. Undefined: a record of an earlier version, which names no lock. */
export type RunningTest = (id: string | undefined, silentMs: number) => boolean

/** A process of which nothing is proven is taken to run until it has shown no sign of life for this long. */
const UNSEEN_MS = 300_000

/** One call may find those of many processes. */
const MAX_REMOVED = 100

/**
 * Of processes that have ended; not those of `named`. A free lock is marked first, by one byte, and removed five
 * minutes later: it is as old as its process, so its age does not tell since when it is free, and it proves the end
 * of the process meanwhile.
 */
export function removeOldLocks(folder: string, named: readonly string[] = []): void {
  let left = MAX_REMOVED
  for (const name of namesIn(folder)) {
    if (left === 0) return
    if (named.includes(name)) continue
    const path = join(folder, name)
    try {
      const { mtimeMs, size } = statSync(path)
      if (Math.abs(Date.now() - mtimeMs) <= UNSEEN_MS || isLocked(path) !== false) continue
      left--
      // SQLite takes a file of one byte for an empty one. The byte sets the time of the mark.
      if (size === 0) truncateSync(path, 1)
      else removeLock(path)
    } catch {
      // Another process removes it too.
    }
  }
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

/** Whether the process with this id runs; undefined where nothing proves it. */
export const isRunning = (folder: string, id: string): boolean | undefined =>
  /^[0-9a-f]{16}$/.test(id) ? isLocked(join(locksFolder(folder), id)) : undefined

/**
 * Tells which processes run, for as long as one call takes: looks at each lock once. Where nothing is proven,
 * `silentMs` decides: the time since the process was last known to run. Where that is far in the future, the clock
 * was set back, and nothing is known of the process.
 */
export function runningIn(folder: string | undefined): RunningTest {
  const known = new Map<string, boolean | undefined>()
  return (id = '', silentMs) => {
    if (!known.has(id)) known.set(id, folder === undefined ? undefined : isRunning(folder, id))
    return known.get(id) ?? Math.abs(silentMs) < UNSEEN_MS
  }
}

/**
 * A record names its process as `@` and the id. Earlier versions wrote `4711@1f0e9a3c`, start time and machine, and
 * read it so: to them, this one runs on another machine, and its silence decides.
 */
export const ownerText = (id: string): string => `@${id}`

/** Undefined in a record of an earlier version. */
export const ownerOf = (text: unknown): string | undefined =>
  typeof text === 'string' ? /^@([0-9a-f]{16})$/.exec(text)?.[1] : undefined

/**
 * Whether a process group has a running member. Zombies do not count where /proc shows them: they may never be
 * reaped, as in a container without an init.
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

/**
 * Undefined where there is no /proc, and where it is that of other process ids: a container may see that of its
 * host.
 */
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
