/** Reads the manifest from its file or standard input, and reports all its problems in one error. */

import { statSync } from 'node:fs'
import { lockFileOf, readLock } from '../../batch/lock/file.js'
import { claimPathOf, furtherOutputsOf, lockPathOf } from '../../batch/lock/lock.js'
import { MAX_BYTES } from '../../batch/manifest/format.js'
import {
  type FurtherOutputFile,
  type ImageRules,
  type Manifest,
  type ManifestProblem,
  readManifest,
} from '../../batch/manifest/index.js'
import { checkPlaceholders, fill } from '../../download/placeholders.js'
import { safePart, unreserved } from '../../download/safe-name.js'
import { RushesError, usageError } from '../../errors.js'
import { describeError, isSystemError } from '../../host/system-error.js'
import { formatBytes } from '../../protocol/byte-size.js'
import { imageTypeOf } from '../../protocol/image-signatures.js'
import { MAX_BODY_BYTES } from '../../protocol/limits.js'
import type { Context } from '../context/context.js'
import { readPath, readStdin } from '../process/stdin.js'
import { plural } from '../terminal/plural.js'
import { annotate, MAX_LINE_ANNOTATIONS } from './annotations.js'
import type { BatchOptions } from './options.js'

/** The name of a manifest from standard input. Its paths are relative to the current folder. */
const STDIN_NAME = 'rushes'

export interface Loaded {
  readonly manifest: Manifest
  readonly lockPath: string
}

type LoadOptions = Pick<BatchOptions, 'allowOutside' | 'maxRuns'> & Pick<ImageRules, 'onImage'>

/** Throws `usage`, with every problem of the manifest as `file:line:column: message`. */
export async function loadManifest(ctx: Context, word: string, options: LoadOptions): Promise<Loaded> {
  const loaded = await checkManifest(ctx, word, options)
  if (loaded instanceof RushesError) throw loaded
  return loaded
}

/** The same with the problems of the manifest as a result: throws `usage` only when the file cannot be read. */
export async function checkManifest(
  ctx: Context,
  word: string,
  { allowOutside, maxRuns, onImage }: LoadOptions,
): Promise<Loaded | RushesError> {
  const path = word === '-' ? STDIN_NAME : word
  const bytes =
    word === '-'
      ? await readStdin(ctx.stdin, 'the manifest', ctx.interrupts.first)
      : await readFile(ctx, word)
  const lockPath = lockFileOf(path)
  const read = await readManifest({
    path,
    bytes,
    allowOutside,
    maxRuns,
    naming: { checkPlaceholders, fill, safePart, unreserved },
    imageTypeOf,
    maxBodyBytes: MAX_BODY_BYTES,
    ...(onImage && { onImage }),
    reserved: new Map([
      [lockPathOf(path), 'the lock file'],
      [lockPath, 'the lock file'],
      [claimPathOf(lockPath), 'the claim file'],
    ]),
    furtherOutputs: furtherOutputsIn(lockPath, path),
  })
  if (!read.ok) {
    for (const { line, column, message } of read.problems.slice(0, MAX_LINE_ANNOTATIONS))
      annotate(ctx, { title: 'Manifest', message, at: { path, line, column } })
    return manifestError(word === '-' ? 'standard input' : word, read.problems)
  }
  return { manifest: read.manifest, lockPath }
}

/** A lock file that cannot be read is reported when the plan is made. */
function furtherOutputsIn(lockPath: string, manifest: string): readonly FurtherOutputFile[] {
  try {
    return furtherOutputsOf(readLock(lockPath, manifest))
  } catch {
    return []
  }
}

async function readFile({ interrupts }: Context, path: string): Promise<Uint8Array> {
  try {
    const found = statSync(path)
    if (found.isDirectory())
      throw usageError(`${path} is a directory.`, 'Give the path of the manifest file.')
    if (found.size > MAX_BYTES)
      throw usageError(
        `${path} is too large (${formatBytes(found.size)}). A manifest may have at most ${MAX_BYTES / 1024 / 1024} MiB.`,
      )
    return await readPath(path, interrupts.first)
  } catch (error) {
    if (!isSystemError(error)) throw error
    throw usageError(
      `${describeError(error, path)}.`,
      'Give the path of a manifest (YAML, JSON, JSON Lines or CSV). See `rushes batch --help`.',
    )
  }
}

/** A screen or two. */
const MAX_SHOWN = 200

function manifestError(name: string, problems: readonly ManifestProblem[]): RushesError {
  const lines = problems
    .slice(0, MAX_SHOWN)
    .map(({ line, column, message }) => `${name}:${line}:${column}: ${message}`)
  const more = problems.length - lines.length
  return usageError(
    `The manifest ${name} has ${plural(problems.length, 'problem')}; nothing was sent.`,
    [...lines, ...(more > 0 ? [`and ${more} more`] : [])].join('\n'),
  )
}
