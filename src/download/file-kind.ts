/**
 * Detects the type of a file: by its first bytes, else by the host's content type. The bytes come first because
 * hosts send JPEGs as `image/png`, and any file as `application/octet-stream`.
 */
import { extname } from 'node:path'

export interface FileKind {
  /** Extension in lower case, without a dot; never empty. */
  readonly extension: string
  readonly contentType: string
  /** How the type was detected. With `nothing`, the extension is `bin`. */
  readonly from: 'bytes' | 'header' | 'nothing'
}

/** Number of bytes that `file-type` reads. */
export const HEAD_BYTES = 4_100

const EXTENSIONS: Readonly<Record<string, string>> = {
  'video/mp4': 'mp4',
  'video/x-m4v': 'm4v',
  'video/quicktime': 'mov',
  'video/webm': 'webm',
  'video/x-matroska': 'mkv',
  'video/mpeg': 'mpg',
  'video/x-msvideo': 'avi',
  'image/png': 'png',
  'image/apng': 'apng',
  'image/jpeg': 'jpg',
  'image/jpg': 'jpg',
  'image/webp': 'webp',
  'image/gif': 'gif',
  'image/avif': 'avif',
  'image/heic': 'heic',
  'image/tiff': 'tif',
  'image/bmp': 'bmp',
  'image/jxl': 'jxl',
  'image/x-exr': 'exr',
  'image/svg+xml': 'svg',
  'audio/mpeg': 'mp3',
  'audio/mp4': 'm4a',
  'audio/aac': 'aac',
  'audio/wav': 'wav',
  'audio/x-wav': 'wav',
  'audio/ogg': 'ogg',
  'audio/flac': 'flac',
  'model/gltf-binary': 'glb',
  'model/gltf+json': 'gltf',
  'application/json': 'json',
  'application/pdf': 'pdf',
  'application/zip': 'zip',
  'text/html': 'html',
  'text/plain': 'txt',
  'text/csv': 'csv',
  'text/vtt': 'vtt',
}

/** Container formats: their bytes do not show the inner format, which the host may know. */
const CONTAINERS = new Set(['xml', 'zip', 'cfb', 'gz'])

interface Evidence {
  readonly head: Uint8Array
  readonly contentType: string | undefined
}

export async function kindOf({ head, contentType }: Evidence): Promise<FileKind> {
  const bytes = await kindOfBytes(head)
  const declared = kindOfHeader(contentType)
  if (bytes !== undefined && !(CONTAINERS.has(bytes.extension) && declared !== undefined)) return bytes
  return declared ?? { extension: 'bin', contentType: 'application/octet-stream', from: 'nothing' }
}

/** Loads file-type on first use: only downloads need it. */
async function kindOfBytes(head: Uint8Array): Promise<FileKind | undefined> {
  const { fileTypeFromBuffer } = await import('file-type')
  // Malformed bytes can make the parser fail, which must not fail the download.
  const found = await fileTypeFromBuffer(head).catch(() => undefined)
  return found && { extension: found.ext.toLowerCase(), contentType: found.mime, from: 'bytes' }
}

function kindOfHeader(header: string | undefined): FileKind | undefined {
  const contentType = header?.split(/[;,]/)[0]?.trim().toLowerCase() ?? ''
  const extension = Object.hasOwn(EXTENSIONS, contentType) ? EXTENSIONS[contentType] : undefined
  return extension === undefined ? undefined : { extension, contentType, from: 'header' }
}

/** Extensions of the same format, or extensions that are often used for each other. */
const FAMILIES: readonly ReadonlySet<string>[] = [
  ['jpg', 'jpeg', 'jpe', 'jfif'],
  ['png', 'apng'],
  ['tif', 'tiff'],
  ['mp4', 'm4v', 'mov', 'qt', 'm4p', 'f4v', '3gp', '3g2'],
  ['mp4', 'm4a', 'm4b', 'aac'],
  ['mkv', 'webm'],
  ['mpg', 'mpeg', 'mpe'],
  ['ogg', 'oga', 'ogv', 'ogx', 'opus', 'spx'],
  ['wav', 'wave'],
  ['aif', 'aiff'],
  ['heic', 'heif', 'hif'],
  ['html', 'htm'],
  ['json', 'jsonl', 'gltf'],
  ['txt', 'text', 'md', 'csv', 'tsv', 'srt', 'vtt', 'log', 'json', 'yaml', 'yml'],
  ['gz', 'tgz', 'tar.gz', 'svgz'],
].map((family) => new Set(family))

/** Returns whether the extension of `path` matches the detected one. True without an extension. */
export function fitsExtension(path: string, extension: string): boolean {
  const named = extname(path).slice(1).toLowerCase()
  return (
    named === '' || named === extension || FAMILIES.some((each) => each.has(named) && each.has(extension))
  )
}

/** Returns whether the extension of `path` is one of a known format of results, or missing. */
export const hasKnownFormat = (path: string): boolean =>
  [...Object.values(EXTENSIONS), 'obj', 'ply', 'psd', 'stl', 'usdz'].some((each) => fitsExtension(path, each))

/** Returns a warning if the extension of the name does not match the content, else undefined. */
export function misnamed(path: string, { extension, contentType, from }: FileKind): string | undefined {
  if (from === 'nothing' || fitsExtension(path, extension)) return undefined
  const known = from === 'bytes' ? 'according to its content' : 'according to the host'
  const fitting = `${path.slice(0, -extname(path).length)}.${extension}`
  return `${path} is a ${extension} file (${contentType}) ${known}; its name was kept. A name that fits: -o ${fitting}`
}
