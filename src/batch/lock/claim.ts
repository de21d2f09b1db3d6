/**
 * Lets only one batch at a time work on a manifest: two would each pay for the missing outputs.
 *
 * The claim is a file beside the lock file, so it holds for every process that can write the lock file: other state
 * folders, containers, other machines on a network folder. Its holder rewrites it every two seconds. A claim that does
 * not change for ten seconds is stale and is replaced. If its process has provably ended (`host/process-lock.ts`), it
 * is replaced immediately. Clocks of different machines are not compared: only changes are observed.
 *
 * The claim of a suspended holder may be replaced. It therefore checks the claim after it has written a create to the
 * lock file and before it sends the create. A batch that replaces a claim reads the lock file afterwards, so for each
 * create either the check fails or the other batch sees the create.
 */
import { randomBytes } from 'node:crypto'
import { type FileHandle, open, readFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { basename } from 'node:path'
import { RushesError, usageError } from '../../errors.js'
import type { Clock } from '../../host/clock.js'
import { flush, removeFile, replaceFile, temporaryBeside, writeFully } from '../../host/files.js'
import { isRunning, type ProcessLock, processLockIn } from '../../host/process-lock.js'
import { errorCode } from '../../host/system-error.js'
import { isObject } from '../../protocol/parse.js'
import { claimPathOf } from './lock.js'

export interface BatchClaim {
  /** Rejects if the claim was replaced or removed. Cheap: reads one small file. */
  check(): Promise<void>
  /** Aborted when a check or heartbeat finds that the claim is lost, with the error of later checks as the reason. */
  readonly lost: AbortSignal
  release(): Promise<void>
}

export interface ClaimOptions {
  readonly lockPath: string
  /** Folder of the process locks. A claim from another state folder can only be observed. */
  readonly stateFolder: string
  readonly clock: Clock
  /** Stops observing another claim. */
  readonly signal: AbortSignal
  /** Called when another claim exists, before it is observed for up to ten seconds. */
  onObserve(message: string): void
}

const HEARTBEAT_MS = 2_000
const POLL_MS = 250
/** Ten seconds, counted in polls, so that time in which the observer itself was suspended does not count. */
const MAX_SILENT_POLLS = 40
/** A claim needs no observation if its process provably runs and its heartbeat is younger than this. */
const FRESH_MS = 2 * HEARTBEAT_MS
/** Wait before checking the result: several batches may replace the same stale claim, and the last one wins. */
const SETTLE_MS = 200
const MAX_TRIES = 20

/** Claims the manifest. Rejects with `usage` if another batch holds it, and with the system error of a failed write. */
export async function claimBatch(options: ClaimOptions): Promise<BatchClaim> {
  const { lockPath, stateFolder, clock, signal } = options
  const path = claimPathOf(lockPath)
  const token = randomBytes(12).toString('hex')
  const since = new Date(clock.now()).toISOString()
  const lock = processLockIn(stateFolder)
  const text = () => claimText(token, lock.id, since, clock.now())
  try {
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      signal.throwIfAborted()
      const handle = await createOrReplace(path, text, options)
      if (handle !== undefined) return hold({ path, lockPath, token, lock, handle, clock, text })
    }
    throw heldError(path, undefined)
  } catch (error) {
    lock.end()
    throw error
  }
}

/** Returns the claim. Undefined if another batch changed it in the meantime. */
async function createOrReplace(
  path: string,
  text: () => string,
  options: ClaimOptions,
): Promise<FileHandle | undefined> {
  try {
    return await createFile(path, text())
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error
  }
  const found = await readText(path)
  if (found === undefined) return undefined
  const { is, holder } = await observeClaim(path, found, options)
  if (is === 'held') throw heldError(path, holder)
  return is === 'stale' ? replace(path, found, text(), options) : undefined
}

async function createFile(path: string, text: string): Promise<FileHandle> {
  const handle = await open(path, 'wx+')
  try {
    await writeText(handle, text)
    return handle
  } catch (error) {
    await handle.close()
    await removeFile(path).catch(() => {})
    throw error
  }
}

/** Replaces the stale claim by a rename, so that the path is never free for a third batch. */
async function replace(
  path: string,
  stale: string,
  text: string,
  { clock, lockPath }: ClaimOptions,
): Promise<FileHandle | undefined> {
  // Named like temporary files of the lock file, so that the next batch removes it.
  const temporary = temporaryBeside(lockPath)
  const handle = await createFile(temporary, text)
  try {
    if ((await readText(path)) === stale) {
      await replaceFile(temporary, path, { clock })
      await clock.sleep(SETTLE_MS)
      if ((await readText(path)) === text) return handle
    }
  } catch (error) {
    // ENOENT: a faster batch has removed the temporary file.
    if (errorCode(error) !== 'ENOENT') {
      await handle.close()
      await removeFile(temporary).catch(() => {})
      throw error
    }
  }
  await handle.close()
  await removeFile(temporary).catch(() => {})
  return undefined
}

interface Observed {
  /** `changed`: another batch replaced or removed the claim. */
  readonly is: 'held' | 'stale' | 'changed'
  readonly holder: ClaimHolder | undefined
}

/** Observes another claim for up to ten seconds, unless its process provably runs or has ended. */
async function observeClaim(path: string, found: string, options: ClaimOptions): Promise<Observed> {
  const { stateFolder, clock, signal, onObserve } = options
  const holder = holderOf(found)
  const runs = holder && isRunning(stateFolder, holder.processLock)
  if (runs === false) return { is: 'stale', holder }
  if (holder !== undefined && runs) {
    const ageMs = clock.now() - Date.parse(holder.heartbeat)
    if (ageMs >= 0 && ageMs < FRESH_MS) return { is: 'held', holder }
  }
  onObserve(
    `Found the claim file of another batch${describeHolder(holder)}. Checking for up to 10 s whether it is still running.`,
  )
  for (let polls = 0; polls < MAX_SILENT_POLLS; polls++) {
    await clock.sleep(POLL_MS, signal)
    const now = await readText(path)
    if (now === undefined) return { is: 'changed', holder }
    if (now !== found) return { is: 'held', holder: holderOf(now) ?? holder }
  }
  return { is: 'stale', holder }
}

interface HeldClaim {
  readonly path: string
  readonly lockPath: string
  readonly token: string
  readonly lock: ProcessLock
  /** Handle of this claim's file: a heartbeat never writes into the claim of another batch. */
  readonly handle: FileHandle
  readonly clock: ClaimOptions['clock']
  text(): string
}

function hold({ path, lockPath, token, lock, handle, clock, text }: HeldClaim): BatchClaim {
  const lost = new AbortController()
  let disarm = () => {}
  let heartbeat: Promise<void> = Promise.resolve()
  let isReleased = false

  async function check(): Promise<void> {
    lost.signal.throwIfAborted()
    const found = await readText(path)
    if (found?.includes(token)) return
    // On a network folder, a read during a heartbeat may return part of the text, so a text without a holder is read
    // again.
    const again = found === undefined || holderOf(found) !== undefined ? found : await readText(path)
    if (again?.includes(token)) return
    lost.abort(lostError(path, lockPath, again))
    throw lost.signal.reason
  }

  function arm(): void {
    if (isReleased) return
    disarm = clock.alarm(HEARTBEAT_MS, () => {
      // A folder that cannot be reached now may be reachable at the next heartbeat.
      heartbeat = check()
        .then(() => writeText(handle, text()))
        .catch(() => {})
        .then(() => {
          if (!lost.signal.aborted) arm()
        })
    })
  }
  arm()

  return {
    check,
    lost: lost.signal,
    async release() {
      isReleased = true
      disarm()
      await heartbeat
      const isOurs = await check().then(
        () => true,
        () => false,
      )
      await handle.close().catch(() => {})
      if (isOurs) await removeFile(path).catch(() => {})
      lock.end()
    },
  }
}

const writeText = async (handle: FileHandle, text: string): Promise<void> => {
  await writeFully(handle, Buffer.from(text), 0)
  // Other machines see the text only after it is flushed.
  await flush(handle)
}

/**
 * Returns the text of the claim. Undefined if there is no file. Opens the file each time, because network folders check
 * for changes only on open.
 */
async function readText(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined
    throw error
  }
}

const heldError = (path: string, holder: ClaimHolder | undefined): RushesError =>
  usageError(
    `Another batch is running on this manifest${describeHolder(holder)}; nothing was sent.`,
    `Wait until it ends, or stop it. Its claim file is ${path}.`,
  )

function lostError(path: string, lockPath: string, found: string | undefined): RushesError {
  const message =
    found === undefined
      ? `The claim file ${path} was removed while this batch was running: another batch may have taken over.`
      : `Another batch${describeHolder(holderOf(found))} took over this manifest while this one was suspended.`
  return new RushesError('download_failed', `${message} This batch stopped creating runs.`, {
    hint:
      'Run the same command again when no other batch is running. ' +
      `Accepted runs are in ${basename(lockPath)} and in \`rushes list\`.`,
  })
}

interface ClaimHolder {
  readonly pid: number
  readonly host: string
  /**
   * Id of the process's lock: `machine` in the file. Earlier versions wrote a boot id there, and read this one as
   * another boot.
   */
  readonly processLock: string
  readonly since: string
  readonly heartbeat: string
}

/** Fixed length, because each text overwrites the one before. */
const TEXT_BYTES = 512

let beats = 0

/** Claim text of this process. `processLock`: id of its lock. `now`: wall-clock time in milliseconds. */
function claimText(token: string, processLock: string, since: string, now: number): string {
  const claim = {
    token,
    pid: process.pid,
    host: hostname(),
    machine: processLock,
    since,
    heartbeat: new Date(now).toISOString(),
    // Changes the text even if the wall clock is set back.
    beats: ++beats,
  }
  return `${JSON.stringify(claim).padEnd(TEXT_BYTES - 1)}\n`
}

/** Parses a claim. Undefined for an empty or invalid file. */
function holderOf(text: string): ClaimHolder | undefined {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  if (!isObject(value)) return undefined
  const { pid, host, machine: processLock, since, heartbeat } = value
  if (typeof pid !== 'number' || !Number.isSafeInteger(pid) || pid < 1) return undefined
  if (typeof host !== 'string' || typeof processLock !== 'string') return undefined
  if (typeof since !== 'string' || typeof heartbeat !== 'string') return undefined
  return { pid, host, processLock, since, heartbeat }
}

/** Returns ` (process 12 on host, since …)`, or an empty text without a holder. */
const describeHolder = (holder: ClaimHolder | undefined): string =>
  holder === undefined ? '' : ` (process ${holder.pid} on ${holder.host}, since ${holder.since})`
