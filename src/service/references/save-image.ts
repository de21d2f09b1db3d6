/** Stores the images that came inside a request: one file for each content, named by its hash. */
import { randomBytes } from 'node:crypto'
import { open, rename, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import type { EmbeddedImage } from '../rules/embedded-images.js'

export async function saveImage(folder: string, { sha256, data }: EmbeddedImage): Promise<void> {
  const path = join(folder, sha256)
  if (await renew(path)) return
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

/** Whether the file exists. Its age starts again at 0, so that `--retain` does not remove an image that was just sent. */
const renew = (path: string): Promise<boolean> =>
  utimes(path, new Date(), new Date()).then(
    () => true,
    () => false,
  )
