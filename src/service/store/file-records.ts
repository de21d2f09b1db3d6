/**
 * Which files the service has, and which of them unfinished runs need. A file is entered before its bytes are stored, and marked
 * before they are removed: so what a process that ended left behind is known, and no create takes a file that is being removed.
 *
 *   writing ──▶ stored ──▶ removing ──▶ removed ──▶ forgotten
 *      └──────────────────────▲
 */
import { randomBytes } from 'node:crypto'
import type { StoredImage } from '../stored-run.js'

/** A file of the service by the key under which it is stored. */
export interface FileName {
  readonly kind: 'input' | 'output'
  readonly key: string
}

/** Of an image: a younger age does not begin anew, so that creates with the same image write nothing. Retention begins at a minute. */
export const RENEWED_AFTER_MS = 30_000

/** Of one call that marks files. */
export const MAX_MARKED = 500

export interface FileRecords {
  /**
   * Enters an image, or begins its age anew when that is over `RENEWED_AFTER_MS`. The key under which the caller stores its bytes,
   * whoever has entered it: it becomes `stored` with the first run that is added with it.
   */
  holdImage(image: Pick<StoredImage, 'sha256' | 'bytes'>, nowMs: number): Promise<string>
  /** The key of an image that is not removed; undefined where none is entered. */
  findImage(sha256: string): Promise<string | undefined>

  /**
   * Marks stored files that were used before `beforeMs` and that no unfinished run needs. How many; the caller goes on while
   * it is `MAX_MARKED`.
   */
  markOldFiles(kind: FileName['kind'], beforeMs: number, nowMs: number): Promise<number>
  /**
   * Marks what was entered and never became stored: outputs of runs that their worker no longer renders, and images from before
   * `beforeMs`, whose creates were refused or stopped.
   */
  markOrphans(beforeMs: number, nowMs: number): Promise<number>
  /** Enters, as marked, files that the storage has and that were never entered, unless an unfinished run needs them. */
  markUnknownFiles(kind: FileName['kind'], keys: readonly string[], nowMs: number): Promise<number>
  /** Marked files in the order of their names, after `last`. */
  listMarkedFiles(limit: number, last: FileName | undefined): Promise<readonly FileName[]>
  /** Files that are removed from the storage. False where another process has recorded it already. */
  recordRemoved(file: FileName, nowMs: number): Promise<boolean>
  /** Frees the keys of files that were removed before `beforeMs`. */
  forgetRemoved(beforeMs: number): Promise<void>
}

/**
 * For an image whose own key, its SHA-256, is that of a file that is being removed or was removed lately: a sweep of another node,
 * which may be slow, must not remove the new file.
 */
export const spareKeyOf = (sha256: string): string => `${sha256}-${randomBytes(8).toString('hex')}`
