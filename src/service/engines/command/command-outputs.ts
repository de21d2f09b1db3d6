/** The outputs that a command left in its folder: which files, in which order, of which type. */
import { chmod, lstat, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { fileTypeFromFile } from 'file-type'
import type { RenderedFile } from '../engine.js'

/**
 * Plain files that are not empty, ordered by name, with numbers by value: `frame-2` before `frame-10`. Hidden files,
 * empty files, links and folders are removed.
 */
export async function takeOutputs(folder: string): Promise<readonly RenderedFile[]> {
  const outputs: RenderedFile[] = []
  for (const name of (await readdir(folder)).sort(byName)) {
    const path = join(folder, name)
    if (await isOutput(name, path)) {
      // Readable by the service alone, whatever the command's umask.
      await chmod(path, 0o600)
      outputs.push({ name, contentType: await contentTypeOf(path) })
    } else await rm(path, { recursive: true, force: true })
  }
  return outputs
}

async function isOutput(name: string, path: string): Promise<boolean> {
  if (name.startsWith('.')) return false
  const stats = await lstat(path)
  return stats.isFile() && stats.size > 0
}

const natural = new Intl.Collator('en', { numeric: true })
const byName = (one: string, other: string): number => natural.compare(one, other) || (one < other ? -1 : 1)

/**
 * By the file's bytes. Anything but image, video, audio or 3D model is sent as plain bytes: a browser would run scripts
 * in HTML or SVG in the service's origin.
 */
async function contentTypeOf(path: string): Promise<string> {
  const mime = (await fileTypeFromFile(path).catch(() => undefined))?.mime
  return mime !== undefined && /^(image|video|audio|model)\//.test(mime) ? mime : 'application/octet-stream'
}
