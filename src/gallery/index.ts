/**
 * Creates the page of `rushes gallery` as one HTML file. The page loads nothing from the network, and links to files by
 * their path relative to the page.
 *
 * All text from a user or a service is in one block of JSON without `<`, and the script makes text nodes from it. The
 * Content-Security-Policy allows only this script and these styles, by their hash, so that nothing in the data can run.
 */
import { createHash } from 'node:crypto'
import { extname, type posix, win32 } from 'node:path'
import { pathToFileURL } from 'node:url'
import { printable, withoutControls } from '../protocol/text.js'
import style from './page.css?raw'
import body from './page.html?raw'
import page from './page.js?raw'

/** How the page shows a file. */
export type Media = 'image' | 'video' | 'audio' | 'file'

export interface GalleryFile {
  /** Path relative to the page, as shown. */
  readonly name: string
  /** The same path as a URL. */
  readonly href: string
  readonly media: Media
  /** Width / height. An estimate, until the browser has loaded the file. */
  readonly ratio: number
  /** Whether the page links to the file. */
  readonly isOpened: boolean
}

export interface GalleryRun {
  readonly id: string
  /** Name of its row in a manifest, and the path of the manifest as shown; undefined if no batch created it. */
  readonly row?: string | undefined
  readonly manifest?: string | undefined
  readonly prompt: string
  readonly model: string
  readonly labels: readonly string[]
  /** Milliseconds since the epoch. */
  readonly time: number
  readonly files: readonly GalleryFile[]
}

export interface Gallery {
  readonly runs: readonly GalleryRun[]
  /** Sentences shown at the end of the page. */
  readonly notes: readonly string[]
}

/** Beginning of every page. A later command recognizes a page by it, and may then replace the file. */
const BEGINNING =
  '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<meta name="generator" content="rushes gallery">'
export const BEGINNING_BYTES = BEGINNING.length

export const isGallery = (head: string): boolean => head.startsWith(BEGINNING)

const SCRIPT = `(() => {
'use strict'
${page}})()
`

const hashOf = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`

/** A page on disk has no origin for `'self'` to match, so `file:` is also allowed. */
const POLICY = [
  `default-src 'none'`,
  `img-src 'self' file:`,
  `media-src 'self' file:`,
  `style-src ${hashOf(style)}`,
  `script-src ${hashOf(SCRIPT)}`,
  `base-uri 'none'`,
  `form-action 'none'`,
].join('; ')

export function galleryHtml({ runs, notes }: Gallery): string {
  const written = notes.map((note) => `<p>${escapeHtml(printable(note))}</p>\n`).join('')
  const data = escapedJson(runs)
  return `${BEGINNING}
<meta http-equiv="Content-Security-Policy" content="${POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>Gallery</title>
<style>${style}</style>
</head>
<body>
${body.replace('<!-- notes -->\n', () => written)}<script type="application/json" id="runs">${data}</script>
<script>${SCRIPT}</script>
</body>
</html>`
}

/**
 * Returns JSON for a `script` element, without control characters and overrides of the reading direction. Escapes `<`, so that
 * the JSON cannot end the element or begin a comment.
 */
const escapedJson = (value: unknown): string =>
  JSON.stringify(value, (key, each: unknown) => {
    if (typeof each !== 'string') return each
    // Only a prompt has lines.
    return key === 'prompt' ? withoutControls(each) : printable(each)
  }).replace(
    /[<>&\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )

const escapeHtml = (text: string): string =>
  text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`)

/** Returns the path of a file relative to the folder of the page, and the same path as a URL. */
export function linkTo(
  folder: string,
  path: string,
  paths: typeof posix,
): { readonly name: string; readonly href: string } {
  const name = paths.relative(folder, path)
  // On Windows, the file is on another drive.
  if (win32.isAbsolute(name) && paths === win32)
    return { name, href: pathToFileURL(name, { windows: true }).href }
  const href = name
    .split(paths.sep)
    .map((part) => encodeURIComponent(part.toWellFormed()))
    .join('/')
  return { name, href }
}

const BY_EXTENSION: Readonly<Record<string, Media>> = Object.fromEntries([
  ...['png', 'apng', 'jpg', 'jpeg', 'webp', 'gif', 'avif', 'svg', 'bmp'].map((each) => [each, 'image']),
  ...['mp4', 'm4v', 'mov', 'webm', 'mkv', 'ogv'].map((each) => [each, 'video']),
  ...['mp3', 'm4a', 'aac', 'wav', 'ogg', 'opus', 'flac'].map((each) => [each, 'audio']),
])

/** Extensions of other formats that a browser or the system opens without running code in them. */
const SAFE_EXTENSIONS: readonly string[] = ['glb', 'gltf', 'ply', 'stl', 'txt', 'zip']

const extensionOf = (path: string): string => extname(path).slice(1).toLowerCase()

/** Determines how the page shows a file: by the content type of its download, or by its extension. */
export function mediaOf(path: string, contentType = ''): Media {
  const [, kind] = /^(image|video|audio)\//.exec(contentType) ?? []
  if (kind !== undefined) return kind as Media
  const extension = extensionOf(path)
  return (Object.hasOwn(BY_EXTENSION, extension) ? BY_EXTENSION[extension] : undefined) ?? 'file'
}

/**
 * Whether the page may link to a file. Only for known formats: a browser would run scripts in other formats, for
 * example SVG, with the rights of a page on disk.
 */
export function canBeOpened(path: string): boolean {
  const extension = extensionOf(path)
  return (
    extension !== 'svg' && (Object.hasOwn(BY_EXTENSION, extension) || SAFE_EXTENSIONS.includes(extension))
  )
}
