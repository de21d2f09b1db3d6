/**
 * One batch at a time works on a manifest: two would each pay for what is missing.
 *
 * The claim is a file beside the lock file, so it holds for every process that can write the lock file: other state
 * folders, containers, other machines on a network folder. Its holder rewrites it every two seconds. A claim whose text does
 * not change for ten seconds is stale and is replaced, at once where its process has proven to have ended
 * (`host/process-lock.ts`). Nobody's clock is compared with another machine's: only changes are observed.
 *
 * A holder that was suspended may find its claim replaced. It therefore checks the claim after it has written a create to
 * the lock file and before it sends the create. A batch that replaces a claim reads the lock file afterwards, so for
 * each create either the check fails or the other batch sees the create.
 */
import { randomBytes } from 'node:crypto'
import { type FileHandle, open, readFile, rename } from 'node:fs/promises'
import { basename } from 'node:path'
import { RushesError } from '../../errors.js'
import type { Clock } from '../../host/clock.js'
import { flush, removeFile, temporaryBeside, writeFully } from '../../host/files.js'
import { isRunning, type ProcessLock, processLockIn } from '../../host/process-lock.js'
import { errorCode } from '../../host/system-error.js'
import { claimText, describeHolder, type Holder, holderOf } from './claim-holder.js'
import { claimPathOf } from './lock.js'

export interface Claim {
  /** Rejects when the claim has been replaced or removed. Cheap: one read of a small file. */
  check(): Promise<void>
  /** Aborted as soon as a check or a heartbeat finds it, with the error of every later check. */
  readonly lost: AbortSignal
  release(): Promise<void>
}

export interface ClaimOptions {
  readonly lockPath: string
  /** Where processes show that they run. Those with another one are observed. */
  readonly stateFolder: string
  readonly clock: Pick<Clock, 'now' | 'sleep' | 'alarm'>
  /** Ends the observation of another claim. */
  readonly signal: AbortSignal
  /** Another claim is there, and is observed for up to ten seconds. */
  onObserve(message: string): void
}

const HEARTBEAT_MS = 2_000
const POLL_MS = 250
/** Ten seconds. Counted in polls, so that a suspension of the observer is not taken for a silence of the holder. */
const MAX_SILENT_POLLS = 40
/** A claim with a younger heartbeat, of a process that is proven to run, needs no observation. */
const FRESH_MS = 2 * HEARTBEAT_MS
/** Several batches may replace the same stale claim: the last one has it. */
const SETTLE_MS = 200
const MAX_TRIES = 20

/** Rejects with `usage` when another batch has it, and with the system's error when it cannot be written. */
export async function claimBatch(options: ClaimOptions): Promise<Claim> {
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

/** Undefined where the claim changed hands meanwhile. */
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
  if (!(await isStale(path, found, options))) return undefined
  return replace(path, found, text(), options)
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

/** A rename over the stale claim, so that the name is never free for a third batch. */
async function replace(
  path: string,
  stale: string,
  text: string,
  { clock, lockPath }: ClaimOptions,
): Promise<FileHandle | undefined> {
  // Named as the other temporary files of the lock file, which the next batch removes.
  const temporary = temporaryBeside(lockPath)
  const handle = await createFile(temporary, text)
  try {
    if ((await readText(path)) === stale) {
      await rename(temporary, path)
      await clock.sleep(SETTLE_MS)
      if ((await readText(path)) === text) return handle
    }
  } catch (error) {
    // ENOENT: a batch that was faster has removed the temporary file.
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

/** Whether the holder has ended. Throws `usage` where it has not; false where the claim is another one by now. */
async function isStale(path: string, found: string, options: ClaimOptions): Promise<boolean> {
  const { stateFolder, clock, signal, onObserve } = options
  const holder = holderOf(found)
  const runs = holder && isRunning(stateFolder, holder.machine)
  if (runs === false) return true
  if (holder !== undefined && runs) {
    const ageMs = clock.now() - Date.parse(holder.heartbeat)
    if (ageMs >= 0 && ageMs < FRESH_MS) throw heldError(path, holder)
  }
  onObserve(
    `Found the claim file of another batch${describeHolder(holder)}. Checking for up to 10 s whether it is still running.`,
  )
  for (let polls = 0; polls < MAX_SILENT_POLLS; polls++) {
    await clock.sleep(POLL_MS, signal)
    const now = await readText(path)
    if (now === undefined) return false
    if (now !== found) throw heldError(path, holderOf(now) ?? holder)
  }
  return true
}

interface Holding {
  readonly path: string
  readonly lockPath: string
  readonly token: string
  readonly lock: ProcessLock
  /** Of the claim's own file: a heartbeat never writes into the claim of another batch. */
  readonly handle: FileHandle
  readonly clock: ClaimOptions['clock']
  text(): string
}

function hold({ path, lockPath, token, lock, handle, clock, text }: Holding): Claim {
  const lost = new AbortController()
  let disarm = () => {}
  let beat: Promise<void> = Promise.resolve()
  let isReleased = false

  async function check(): Promise<void> {
    lost.signal.throwIfAborted()
    const found = await readText(path)
    if (found?.includes(token)) return
    // A torn read of a heartbeat on a network folder has no token: it is read once more.
    const again = found === undefined || holderOf(found) !== undefined ? found : await readText(path)
    if (again?.includes(token)) return
    lost.abort(lostError(path, lockPath, again))
    throw lost.signal.reason
  }

  function arm(): void {
    if (isReleased) return
    disarm = clock.alarm(HEARTBEAT_MS, () => {
      // A folder that cannot be reached now may be reachable at the next heartbeat.
      beat = check()
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
      await beat
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
  // Other machines see it only then.
  await flush(handle)
}

/** Undefined where there is none. Opened anew each time: network folders look for changes only then. */
async function readText(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined
    throw error
  }
}

/** Cause of the error of a claim that another batch holds. */
class HeldByAnother extends Error {}

/** Whether another batch works on the manifest. */
export const isHeldByAnother = (error: unknown): error is RushesError =>
  error instanceof RushesError && error.cause instanceof HeldByAnother

const heldError = (path: string, holder: Holder | undefined): RushesError =>
  new RushesError(
    'usage',
    `Another batch is running on this manifest${describeHolder(holder)}; nothing was sent.`,
    {
      hint: `Wait until it ends, or stop it. Its claim file is ${path}.`,
      cause: new HeldByAnother('another batch'),
    },
  )

function lostError(path: string, lockPath: string, found: string | undefined): RushesError {
  const message =
    found === undefined
      ? `The claim file ${path} was removed while this batch was running: another batch may have taken over.`
      : `Another batch${describeHolder(holderOf(found))} took over this manifest while this one was suspended.`
  return new RushesError('download_failed', `${message} This batch stopped creating runs.`, {
    hint: `Run the same command again when no other batch is running. Accepted runs are in ${basename(lockPath)} and in \`rushes list\`.`,
  })
}
