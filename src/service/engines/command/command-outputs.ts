/** The outputs that a command left in its folder: which files, in which order, of which type. */
import { fileTypeFromFile } from 'file-type'
import type { OwnFolder } from '../../../host/own-folder.js'
import type { RenderedFile } from '../engine.js'

/**
 * Plain files that are not empty, ordered by name, with numbers by value: `frame-2` before `frame-10`. Hidden files,
 * empty files, links and folders are left out. Throws `FolderReplaced` and `ForeignFile`.
 */
export async function takeOutputs(folder: OwnFolder): Promise<readonly RenderedFile[]> {
  const outputs: RenderedFile[] = []
  for (const name of [...(await folder.names())].sort(byName)) {
    if (name.startsWith('.')) continue
    const bytes = (await folder.takeFile(name)) ?? 0
    if (bytes > 0) outputs.push({ name, contentType: await contentTypeOf(folder.entry(name)) })
  }
  return outputs
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
