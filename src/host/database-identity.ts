/**
 * Recognizes a database file that was removed, replaced, or overwritten in place while it is open. Each new database has a
 * random number in its header (SQLite's application id), which a copy made by `VACUUM INTO` gets anew.
 */
import { randomInt } from 'node:crypto'
import { fstatSync, openSync, readSync, statSync } from 'node:fs'
import { isEmpty } from './database-file.js'

/** The first 16 bytes of every SQLite database. */
const MAGIC = Buffer.from('SQLite format 3\0')
const WAL_OFFSET = 18
const ID_OFFSET = 68
const HEADER_BYTES = 72

/**
 * Never closed: when a process closes any descriptor of a file, the system releases all locks that this process has on it,
 * and those of SQLite are among them.
 */
const descriptors = new Map<string, number>()

function descriptorOf(path: string): number {
  const found = statSync(path, { throwIfNoEntry: false })
  const known = found && descriptors.get(`${found.dev}:${found.ino}`)
  if (known !== undefined) return known
  const descriptor = openSync(path, 'r')
  const { dev, ino } = fstatSync(descriptor)
  descriptors.set(`${dev}:${ino}`, descriptor)
  return descriptor
}

function readHeader(descriptor: number): Buffer {
  const header = Buffer.alloc(HEADER_BYTES)
  readSync(descriptor, header, 0, HEADER_BYTES, 0)
  return header
}

/** Whether the header says that the database uses a write-ahead log. */
export const isInWalMode = (path: string): boolean => readHeader(descriptorOf(path))[WAL_OFFSET] !== 1

/** SQL that gives the database a number of its own, which no other has. */
export const newApplicationId = (): string => `PRAGMA application_id = ${randomInt(1, 2 ** 31)}`

export interface Identity {
  /** False when the file was removed, emptied, replaced or overwritten: what is written to it is lost. Takes some microseconds. */
  isCurrent(): boolean
  /** Whether another file has its name, or none. */
  wasMoved(): boolean
}

/** Of the file at `path`, whose inode is `inode`. */
export function identify(path: string, inode: number | undefined): Identity {
  const descriptor = descriptorOf(path)
  const header = () => readHeader(descriptor)
  /** 0 in a database of an earlier version, until a migration is in the file itself. */
  let id = header().readInt32BE(ID_OFFSET)

  function hasItsHeader(): boolean {
    const found = header()
    if (found.compare(MAGIC, 0, MAGIC.length, 0, MAGIC.length) !== 0) return false
    const foundId = found.readInt32BE(ID_OFFSET)
    if (id === 0) id = foundId
    return foundId === id
  }

  const stat = () => statSync(path, { throwIfNoEntry: false })
  return {
    isCurrent() {
      const file = stat()
      return file !== undefined && file.ino === inode && !isEmpty(file) && hasItsHeader()
    },
    wasMoved: () => stat()?.ino !== inode,
  }
}
