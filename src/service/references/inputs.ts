/** Keeps the images that came inside a request: one file for each content, named by its hash. */
import { randomBytes } from 'node:crypto'
import { open, rename, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { EmbeddedImage } from '../rules/images.js'

export async function saveImage(folder: string, { sha256, data }: EmbeddedImage): Promise<void> {
  const path = join(folder, sha256)
  if (await exists(path)) return
  const temporary = `${path}.${randomBytes(6).toString('hex')}.tmp`
  const file = await open(temporary, 'wx', 0o600)
  try {
    await file.writeFile(data)
    await file.sync()
  } finally {
    await file.close()
  }
  await rename(temporary, path)
}

const exists = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  )
