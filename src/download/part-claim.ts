/**
 * Whose part is whose. The folder of a part is called `.fox.mp4.1f0e9a3c.part`: the name follows from the place, the run and
 * the number of the output, so that a later process finds it; not from the address, which is signed and changes.
 *
 * Who works on it has renamed it to a name with its process id and start, which succeeds for one process alone. A folder
 * of a process that is gone is anybody's. The start tells a process from a later one of the same id: in a container the
 * first id is 1 every time.
 */
import { createHash } from 'node:crypto'
import { constants } from 'node:fs'
import { lstat, mkdir, open, readdir, rename, rm } from 'node:fs/promises'
import { uptime } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { errorCode } from '../host/directories.js'
import { cutToBytes } from '../host/files.js'
import { isAlive, ownMark } from '../host/processes.js'
import { aboutIn, bytesIn, newBytesIn, type Part, partOf } from './part-file.js'
import { readAbout } from './part-metadata.js'
import { usefulBytes } from './resume-plan.js'

export interface PartKey {
  /** Where the file is to be; `{ext}` may stand in its name. */
  readonly place: string
  readonly runId: string
  /** The number of the output within its run, from 0. */
  readonly position: number
}

const NAME_MOST_BYTES = 255
/** `.`, the hash, and an owner: `.1f0e9a3c.4194304-999999999999-1000.part` at the longest. */
const ENDING_MOST_BYTES = 48

/** The beginning that all names of a part have in common. */
function stemOf({ place, runId, position }: PartKey): string {
  const name = basename(place).replaceAll('.{ext}', '').replaceAll('{ext}', '')
  const hash = createHash('sha256')
    .update(JSON.stringify([basename(place), runId, position]))
    .digest('hex')
  return `.${cutToBytes(name, NAME_MOST_BYTES - ENDING_MOST_BYTES)}.${hash.slice(0, 8)}`
}

let calls = 0

/** A start of 0 is one that the system does not tell. */
const ownName = (stem: string): string => `${stem}.${process.pid}-${ownMark().startedAt ?? 0}-${calls++}.part`

function isAbandoned(stem: string, name: string): boolean {
  if (!name.startsWith(stem)) return false
  const [owned, pid, startedAt] = /^\.(\d+)-(\d+)-\d+\.part$/.exec(name.slice(stem.length)) ?? []
  if (owned === undefined) return false
  return !isAlive({ pid: Number(pid), startedAt: startedAt === '0' ? undefined : startedAt })
}

/** What lies in a folder that belongs to somebody's part; undefined for a folder that tells nobody what is in it. */
export type Listing = (folder: string) => Promise<readonly string[] | undefined>

/** Looks into each folder once: what two hundred outputs find in it is what earlier commands have left there. */
export function createListing(): Listing {
  const found = new Map<string, ReturnType<Listing>>()
  return (folder) => {
    const names =
      found.get(folder) ??
      readdir(folder).then(
        (all) => all.filter((name) => name.startsWith('.') && name.endsWith('.part')),
        (error) => (errorCode(error) === 'ENOENT' ? [] : undefined),
      )
    found.set(folder, names)
    return names
  }
}

/**
 * What earlier tries of somebody have left, now ours: the longest of them. The others, and what is of no use, are removed.
 * Undefined when there is nothing, or neighbours are at it.
 */
export async function claimPart(key: PartKey, list: Listing): Promise<Part | undefined> {
  const [folder, stem] = [dirname(key.place), stemOf(key)]
  const free = `${stem}.part`
  let longest: Part | undefined
  for (const name of (await list(folder)) ?? [free]) {
    if (name !== free && !isAbandoned(stem, name)) continue
    const own = join(folder, ownName(stem))
    try {
      await rename(join(folder, name), own)
    } catch {
      // Not there, somebody else was quicker, or it is not for us to take.
      continue
    }
    const part = await takeOver(own, join(folder, free))
    if (part === undefined) await rm(own, { recursive: true, force: true }).catch(() => {})
    else if (longest === undefined || part.bytes > longest.bytes) {
      await longest?.discard()
      longest = part
    } else await part.discard()
  }
  return longest
}

/** A new one. Throws the system's errors. */
export async function createPart(key: PartKey): Promise<Part> {
  const [folder, stem] = [dirname(key.place), stemOf(key)]
  const own = join(folder, ownName(stem))
  await mkdir(own)
  try {
    const handle = await newBytesIn(own)
    return partOf({ own, free: join(folder, `${stem}.part`), handle, bytes: 0, about: undefined })
  } catch (error) {
    await rm(own, { recursive: true, force: true })
    throw error
  }
}

/** Undefined when there is nothing in it to go on from. */
async function takeOver(own: string, free: string): Promise<Part | undefined> {
  const handle = await openBytes(own).catch(() => undefined)
  if (handle === undefined) return undefined
  try {
    const { size, mtimeMs, nlink } = await handle.stat()
    const about = await readAbout(aboutIn(own))
    // What a process wrote outlives it: so many bytes count as the file has. After a failure of the machine it may be
    // longer than what reached the disk, with zeros in between, which nothing but a checksum of the host would tell.
    const isSure = about?.flushedBytes === size || mtimeMs > Date.now() - uptime() * 1_000
    // Another link to the bytes: killed when they had just got their name. They are that file now, and not ours to write to.
    if (isSure && nlink === 1 && usefulBytes(about, size) > 0)
      return partOf({ own, free, handle, bytes: size, about })
  } catch {
    // As good as nothing.
  }
  await handle.close().catch(() => {})
  return undefined
}

/** Links are not followed: in a folder that many may write to, one could lead to a file of ours. */
async function openBytes(own: string) {
  if (!(await lstat(own)).isDirectory()) return undefined
  return open(bytesIn(own), constants.O_RDWR | (constants.O_NOFOLLOW ?? 0))
}
