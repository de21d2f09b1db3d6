/** What a command has left in its folder: which files are outputs, in which order, and what they are. */
import { chmod, lstat, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { fileTypeFromFile } from 'file-type'
import type { RenderedFile } from '../engine.js'

/**
 * Plain files with something in them, in the order of their names, numbers by their value: `frame-2` before
 * `frame-10`. Hidden files, empty ones, links and folders are no outputs and are removed.
 */
export async function takeOutputs(folder: string): Promise<readonly RenderedFile[]> {
  const outputs: RenderedFile[] = []
  for (const name of (await readdir(folder)).sort(byName)) {
    const path = join(folder, name)
    if (await isOutput(name, path)) {
      // Whatever umask the command had: the files are read by the service alone, and handed out by it.
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
 * By its bytes alone. What is no picture, film, sound or 3D model is bytes and nothing else: a browser would run
 * scripts in HTML or SVG as if they were the service's own.
 */
async function contentTypeOf(path: string): Promise<string> {
  const mime = (await fileTypeFromFile(path).catch(() => undefined))?.mime
  return mime !== undefined && /^(image|video|audio|model)\//.test(mime) ? mime : 'application/octet-stream'
}
