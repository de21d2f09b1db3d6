/** How the page shows a file: by the content type of its download, else by its extension. */
import { extname } from 'node:path'
import type { Media } from './index.js'

const BY_EXTENSION: Readonly<Record<string, Media>> = Object.fromEntries([
  ...['png', 'apng', 'jpg', 'jpeg', 'webp', 'gif', 'avif', 'svg', 'bmp'].map((each) => [each, 'image']),
  ...['mp4', 'm4v', 'mov', 'webm', 'mkv', 'ogv'].map((each) => [each, 'video']),
  ...['mp3', 'm4a', 'aac', 'wav', 'ogg', 'opus', 'flac'].map((each) => [each, 'audio']),
])

/** Others that a browser or the system opens without running anything in them. */
const FURTHER: readonly string[] = ['glb', 'gltf', 'ply', 'stl', 'txt', 'zip']

const extensionOf = (path: string): string => extname(path).slice(1).toLowerCase()

export function mediaOf(path: string, contentType = ''): Media {
  const [, told] = /^(image|video|audio)\//.exec(contentType) ?? []
  if (told !== undefined) return told as Media
  const extension = extensionOf(path)
  return (Object.hasOwn(BY_EXTENSION, extension) ? BY_EXTENSION[extension] : undefined) ?? 'file'
}

/**
 * Only known formats: a service could send a script in another format, which a browser would run with
 * the rights of a page from disk. SVG is such a format.
 */
export function canBeOpened(path: string): boolean {
  const extension = extensionOf(path)
  return extension !== 'svg' && (Object.hasOwn(BY_EXTENSION, extension) || FURTHER.includes(extension))
}

/** `16:9` as a number. Undefined for everything else. */
export function ratioOf(text: unknown): number | undefined {
  const [, width, height] =
    /^(\d{1,5}(?:\.\d+)?)[:x/](\d{1,5}(?:\.\d+)?)$/.exec(typeof text === 'string' ? text : '') ?? []
  const ratio = Number(width) / Number(height)
  return Number.isFinite(ratio) && ratio > 0 ? ratio : undefined
}
