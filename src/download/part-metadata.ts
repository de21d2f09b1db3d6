/** What lies beside the bytes of a part: of which file they are, for a later process. Replaced in one step. */
import { readFile } from 'node:fs/promises'
import { writeAtomically } from '../host/files.js'
import type { About } from './resume-plan.js'

export interface KeptAbout extends About {
  /** So many bytes are known to be on the disk. */
  readonly flushedBytes?: number | undefined
}

/**
 * Flushed only where it says what is on the disk. Without that a killed process leaves it whole all the same; a failure of
 * the machine may leave nonsense, and then nothing is known of the bytes, which would not be sure either.
 */
export const keepAbout = (
  path: string,
  about: KeptAbout,
  { isFlushed = false }: { readonly isFlushed?: boolean } = {},
): Promise<void> => writeAtomically(path, `${JSON.stringify(about)}\n`, { isFlushed })

/** Undefined when it is not there, or nonsense: nothing is then known of the bytes. */
export async function readAbout(path: string): Promise<KeptAbout | undefined> {
  try {
    const value: unknown = JSON.parse(await readFile(path, 'utf8'))
    return typeof value === 'object' && value !== null
      ? checked(value as Readonly<Record<string, unknown>>)
      : undefined
  } catch {
    return undefined
  }
}

function checked(value: Readonly<Record<string, unknown>>): KeptAbout {
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
