/**
 * A file that is still coming in. It lies in a hidden folder beside its place, since only within one file system a
 * rename is one step: `.fox.mp4.1f0e9a3c.part` with `bytes` and `about.json`. The name follows from the place, the run
 * and the number of the output, so that a later process finds it; not from the address, which is signed and changes.
 *
 * Who works on it has renamed the folder to a name with its process id, which succeeds for one process alone. A folder of
 * a process that is gone is anybody's.
 */
import { createHash, type Hash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { type FileHandle, mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises'
import { uptime } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { cutToBytes, flush, writeAtomically, writeFully } from '../host/files.js'
import { processExists } from '../host/processes.js'
import { type About, validatorOf } from './resume.js'

export interface Part {
  /** Of the bytes. */
  readonly path: string
  readonly bytes: number
  /** Undefined: there is nothing to go on from. */
  readonly about: About | undefined
  /** Empties it for what is to come. */
  begin(about: About | undefined): Promise<void>
  write(chunk: Uint8Array): Promise<void>
  /** The first bytes. */
  head(bytes: number): Promise<Uint8Array>
  /** Looks through what an earlier process has written, so that `seal` can tell what the whole file holds. */
  takeUp(signal: AbortSignal | undefined): Promise<void>
  /** Everything was written: waits for the disk, and tells what the file holds. */
  seal(): Promise<{ readonly bytes: number; readonly sha256: string }>
  /** Leaves it for a later process, if that can be of use; whether it was. Never throws. */
  release(): Promise<boolean>
  /** Removes it, or what is left of it; never throws. */
  discard(): Promise<void>
}

export interface PartKey {
  /** Where the file is to be; `{ext}` may stand in its name. */
  readonly place: string
  readonly runId: string
  /** The number of the output within its run, from 0. */
  readonly position: number
}

const NAME_MOST_BYTES = 255
/** `.`, the hash, and an owner: `.1f0e9a3c.4194304-1000.part` at the longest. */
const ENDING_MOST_BYTES = 34

/** The beginning that all names of a part have in common. */
function stemOf({ place, runId, position }: PartKey): string {
  const name = basename(place).replaceAll('.{ext}', '').replaceAll('{ext}', '')
  const hash = createHash('sha256')
    .update(JSON.stringify([basename(place), runId, position]))
    .digest('hex')
  return `.${cutToBytes(name, NAME_MOST_BYTES - ENDING_MOST_BYTES)}.${hash.slice(0, 8)}`
}

let calls = 0
const ownName = (stem: string): string => `${stem}.${process.pid}-${calls++}.part`

/** The part that an earlier try of somebody has left, now ours; undefined when there is none, or a neighbour is at it. */
export async function claimPart(key: PartKey): Promise<Part | undefined> {
  const [folder, stem] = [dirname(key.place), stemOf(key)]
  const own = join(folder, ownName(stem))
  for (const name of [`${stem}.part`, ...(await abandoned(folder, stem))])
    try {
      await rename(join(folder, name), own)
      return await takeOver(own, join(folder, `${stem}.part`))
    } catch {
      // Not there, somebody else was quicker, or nothing is in it.
      await rm(own, { recursive: true, force: true }).catch(() => {})
    }
  return undefined
}

async function abandoned(folder: string, stem: string): Promise<readonly string[]> {
  const names = await readdir(folder).catch(() => [])
  return names.filter((name) => {
    const [, pid] = name.startsWith(stem) ? (/^\.(\d+)-\d+\.part$/.exec(name.slice(stem.length)) ?? []) : []
    return pid !== undefined && !processExists(Number(pid))
  })
}

/** A new one. Throws the system's errors. */
export async function createPart(key: PartKey): Promise<Part> {
  const [folder, stem] = [dirname(key.place), stemOf(key)]
  const own = join(folder, ownName(stem))
  await mkdir(own)
  try {
    // Its mode is what the umask leaves of 0666, as of any file that a user makes.
    const handle = await open(join(own, 'bytes'), 'wx+', 0o666)
    return partOf({ own, free: join(folder, `${stem}.part`), handle, bytes: 0, about: undefined })
  } catch (error) {
    await rm(own, { recursive: true, force: true })
    throw error
  }
}

async function takeOver(own: string, free: string): Promise<Part> {
  const handle = await open(join(own, 'bytes'), 'r+')
  const { size, mtimeMs, nlink } = await handle.stat()
  if (nlink > 1) {
    // Killed when the bytes had just got their name: they are that file now, and not ours to write to.
    await handle.close()
    throw new Error('the bytes are in place')
  }
  const about = await readAbout(join(own, 'about.json'))
  // What a process wrote outlives it, but after a failure of the machine a file may be longer than what reached the disk.
  const isSure = about?.flushedBytes === size || mtimeMs > Date.now() - uptime() * 1_000
  return partOf({ own, free, handle, bytes: size, about: isSure ? about : undefined })
}

interface KeptAbout extends About {
  /** So many bytes are known to be on the disk. */
  readonly flushedBytes?: number | undefined
}

async function readAbout(path: string): Promise<KeptAbout | undefined> {
  try {
    const value: unknown = JSON.parse(await readFile(path, 'utf8'))
    return typeof value === 'object' && value !== null
      ? checkedAbout(value as Record<string, unknown>)
      : undefined
  } catch {
    return undefined
  }
}

function checkedAbout(value: Readonly<Record<string, unknown>>): KeptAbout {
  const text = (each: unknown) => (typeof each === 'string' ? each : undefined)
  const number = (each: unknown) => (Number.isSafeInteger(each) ? (each as number) : undefined)
  return {
    etag: text(value.etag),
    lastModified: text(value.lastModified),
    contentType: text(value.contentType),
    totalBytes: number(value.totalBytes),
    flushedBytes: number(value.flushedBytes),
  }
}

interface Parts {
  /** The folder's name while it is ours, and when it is nobody's. */
  readonly own: string
  readonly free: string
  readonly handle: FileHandle
  readonly bytes: number
  readonly about: About | undefined
}

function partOf({ own, free, handle, ...found }: Parts): Part {
  const path = join(own, 'bytes')
  let { bytes, about } = found
  /** Of the first `bytes` bytes; undefined when an earlier process has written them. */
  let hash: Hash | undefined = bytes === 0 ? createHash('sha256') : undefined
  const keepAbout = (kept: KeptAbout) => writeAtomically(join(own, 'about.json'), `${JSON.stringify(kept)}\n`)
  const discard = async (): Promise<void> => {
    await handle.close().catch(() => {})
    await rm(own, { recursive: true, force: true }).catch(() => {})
  }
  return {
    path,
    get bytes() {
      return bytes
    },
    get about() {
      return about
    },
    async begin(next) {
      await handle.truncate(0)
      hash = createHash('sha256')
      bytes = 0
      about = next
      if (about !== undefined && validatorOf(about) !== undefined) await keepAbout(about)
    },
    async write(chunk) {
      await writeFully(handle, chunk, bytes)
      hash?.update(chunk)
      bytes += chunk.byteLength
    },
    async head(most) {
      const { buffer, bytesRead } = await handle.read(Buffer.alloc(most), 0, most, 0)
      return buffer.subarray(0, bytesRead)
    },
    async takeUp(signal) {
      if (hash !== undefined) return
      const found = createHash('sha256')
      for await (const chunk of createReadStream(path, { end: bytes - 1, signal }))
        found.update(chunk as Uint8Array)
      hash = found
    },
    async seal() {
      await flush(handle)
      if (hash === undefined) throw new Error('a part was sealed before it was taken up')
      return { bytes, sha256: hash.copy().digest('hex') }
    },
    async release() {
      try {
        if (about === undefined || validatorOf(about) === undefined || bytes === 0)
          throw new Error('of no use')
        await flush(handle)
        await keepAbout({ ...about, flushedBytes: bytes })
        await handle.close()
        await rename(own, free)
        return true
      } catch {
        // Also where a neighbour has left its own part there: one is enough.
        await discard()
        return false
      }
    },
    discard,
  }
}
