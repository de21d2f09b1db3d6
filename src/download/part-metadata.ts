/** The metadata file of a part: which file its bytes belong to, for a later process. */
import { readFile } from 'node:fs/promises'
import { writeAtomically } from '../host/files.js'
import type { PartMetadata } from './resume-plan.js'

export interface StoredMetadata extends PartMetadata {
  /** This many bytes were flushed to the disk. */
  readonly flushedBytes?: number | undefined
}

/**
 * Written atomically. Without a flush it survives a killed process; after a crash of the machine it may be invalid, and
 * the bytes are then not used.
 */
export const writeMetadata = (
  path: string,
  metadata: StoredMetadata,
  { isFlushed = false }: { readonly isFlushed?: boolean } = {},
): Promise<void> => writeAtomically(path, `${JSON.stringify(metadata)}\n`, { isFlushed })

/** Undefined when it is missing or invalid. */
export async function readMetadata(path: string): Promise<StoredMetadata | undefined> {
  try {
    const value: unknown = JSON.parse(await readFile(path, 'utf8'))
    return typeof value === 'object' && value !== null
      ? checked(value as Readonly<Record<string, unknown>>)
      : undefined
  } catch {
    return undefined
  }
}

function checked(value: Readonly<Record<string, unknown>>): StoredMetadata {
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
