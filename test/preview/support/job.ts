import { writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createPreviewEngine } from '../../../src/preview/index.js'
import type { RenderJob } from '../../../src/service/engines/engine.js'
import { temporaryFolder } from '../../support/temporary-folder.js'

/** Files with these bytes, as the service saves references. */
export function referenceFiles(images: readonly (Uint8Array | undefined)[]): readonly (string | undefined)[] {
  const folder = temporaryFolder()
  return images.map((bytes, index) => {
    if (bytes === undefined) return undefined
    const path = join(folder, String(index + 1))
    writeFileSync(path, bytes)
    return path
  })
}

export interface Rendered {
  readonly folder: string
  readonly contentType: string
  readonly bytes: Buffer
  readonly progress: readonly number[]
}

/** Renders one output into a temporary folder. */
export async function render(
  kind: RenderJob['kind'],
  input: RenderJob['input'],
  images: readonly (Uint8Array | undefined)[] = [],
): Promise<Rendered> {
  const folder = temporaryFolder()
  const progress: number[] = []
  const { signal } = new AbortController()
  const onProgress = (fraction: number) => void progress.push(fraction)
  const [file] = await createPreviewEngine().render({
    kind,
    input,
    folder,
    references: referenceFiles(images),
    signal,
    onProgress,
  })
  if (file === undefined) throw new Error('nothing was rendered')
  return { folder, contentType: file.contentType, bytes: await readFile(join(folder, file.name)), progress }
}
