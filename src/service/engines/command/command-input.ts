/** What a command receives: the input as JSON, the reference images as files, and its environment. */
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileTypeFromBuffer } from 'file-type'
import type { RenderJob } from '../engine.js'

/**
 * Writes the reference images as files, in the order of `image_urls`: `01.png`, `02.jpg`. Throws when one is missing:
 * without it the model would make something that was not asked for.
 */
export async function writeReferences(
  folder: string,
  references: RenderJob['references'],
): Promise<readonly string[]> {
  await mkdir(folder, { mode: 0o700 })
  const paths: string[] = []
  for (const [index, bytes] of references.entries()) {
    if (bytes === undefined) throw new Error(`Reference image ${index + 1} could not be read.`)
    const extension = (await fileTypeFromBuffer(bytes).catch(() => undefined))?.ext ?? 'bin'
    const path = join(folder, `${String(index + 1).padStart(2, '0')}.${extension}`)
    await writeFile(path, bytes, { mode: 0o600 })
    paths.push(path)
  }
  return paths
}

/** Overwrites `image_files`: a field of that name in the request must not name files of this machine. */
export const inputText = (input: RenderJob['input'], imageFiles: readonly string[]): string =>
  `${JSON.stringify({ ...input, image_files: imageFiles })}\n`

type Env = Readonly<Record<string, string | undefined>>

/** Removes the service's own settings, above all its keys and its database. The rest is for the model (PATH, CUDA, its own keys). */
export const withoutOwnVariables = (env: Env): Env =>
  Object.fromEntries(Object.entries(env).filter(([name]) => !/^(RUSHES_|PG)/.test(name)))

export const environmentOf = (env: Env, job: RenderJob, inputFolder: string): Env => ({
  ...withoutOwnVariables(env),
  RUSHES_OUTPUT_DIR: job.folder,
  RUSHES_INPUT_DIR: inputFolder,
  RUSHES_KIND: job.kind,
  ...(job.run && { RUSHES_RUN_ID: job.run.id, RUSHES_MODEL: job.run.model }),
})
