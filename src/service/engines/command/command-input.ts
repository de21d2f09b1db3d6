/** What a command receives: the input as JSON, the reference images as files, and its environment. */
import { rename } from 'node:fs/promises'
import { join } from 'node:path'
import { fileTypeFromFile } from 'file-type'
import type { RenderJob } from '../engine.js'
import type { Env } from '../environment.js'

/**
 * Moves the reference images to where the command finds them, in the order of `image_urls`: `01.png`, `02.jpg`. Throws when one
 * is missing: without it the model would make something that was not asked for.
 */
export async function moveReferences(
  folder: string,
  references: RenderJob['references'],
): Promise<readonly string[]> {
  const paths: string[] = []
  for (const [index, source] of references.entries()) {
    if (source === undefined) throw new Error(`Reference image ${index + 1} could not be read.`)
    const extension = (await fileTypeFromFile(source).catch(() => undefined))?.ext ?? 'bin'
    const path = join(folder, `${String(index + 1).padStart(2, '0')}.${extension}`)
    await rename(source, path)
    paths.push(path)
  }
  return paths
}

/** Overwrites `image_files`: a field of that name in the request must not name files of this machine. */
export const inputText = (input: RenderJob['input'], imageFiles: readonly string[]): string =>
  `${JSON.stringify({ ...input, image_files: imageFiles })}\n`

/** `env`: by `commandEnvironment`. */
export const environmentOf = (env: Env, job: RenderJob, inputFolder: string): Env => ({
  ...env,
  RUSHES_OUTPUT_DIR: job.folder,
  RUSHES_INPUT_DIR: inputFolder,
  RUSHES_KIND: job.kind,
  ...(job.run && { RUSHES_RUN_ID: job.run.id, RUSHES_MODEL: job.run.model }),
})
