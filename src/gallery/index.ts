/**
 * The page of `rushes gallery`: values in, one HTML file out. It loads nothing from the network, and shows files by their
 * address relative to the page.
 *
 * Everything that a person or a service wrote is in one block of JSON without `<`, which the script turns into text nodes.
 * The policy allows this script and these styles by their hash, so that nothing in the data can run.
 */

import { createHash } from 'node:crypto'
import { extname, type posix, win32 } from 'node:path'
import { pathToFileURL } from 'node:url'
import { escapeControls, printable } from '../protocol/text.js'
import elements from './elements.js?raw'
import layout from './layout.js?raw'
import pageStyle from './page.css?raw'
import body from './page.html?raw'
import page from './page.js?raw'
import viewerStyle from './viewer.css?raw'

/** How the page shows a file. */
export type Media = 'image' | 'video' | 'audio' | 'file'

export interface GalleryFile {
  /** As it is shown: the path relative to the page. */
  readonly name: string
  /** The same as a URL. */
  readonly href: string
  readonly media: Media
  /** As it is shown: `1.5 MiB`. */
  readonly size: string
  /** In pixels, where they are known. */
  readonly width?: number | undefined
  readonly height?: number | undefined
  /** Width by height, as far as it is known before the file is loaded. */
  readonly ratio: number
  /** Whether a link opens the file. */
  readonly isOpened: boolean
}

export interface GalleryRun {
  readonly id: string
  readonly prompt: string
  readonly model: string
  /** The service's address without its scheme, or `local`. */
  readonly where: string
  /** Milliseconds since the epoch. */
  readonly time: number
  readonly tookMs?: number | undefined
  /** The command that creates it again; undefined when one command cannot. */
  readonly again?: string | undefined
  readonly files: readonly GalleryFile[]
}

export interface Gallery {
  readonly runs: readonly GalleryRun[]
  /** Sentences at the end of the page. */
  readonly notes: readonly string[]
}

/** The beginning of every page, by which a later command knows that it may replace the file. */
const BEGINNING =
  '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<meta name="generator" content="rushes gallery">'
export const BEGINNING_BYTES = BEGINNING.length

export const isGallery = (head: string): boolean => head.startsWith(BEGINNING)

/** One script: a page from disk cannot load modules. */
const SCRIPT = `(() => {
'use strict'
${[layout, elements, page].map((module) => module.replace(/^import .*\n/gm, '').replace(/^export /gm, '')).join('\n')}})()
`

const STYLE = `${pageStyle}${viewerStyle}`

const hashOf = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`

/** A page from disk has no origin that `'self'` could mean, so `file:` is named too. */
const POLICY = [
  `default-src 'none'`,
  `img-src 'self' file:`,
  `media-src 'self' file:`,
  `style-src ${hashOf(STYLE)}`,
  `script-src ${hashOf(SCRIPT)}`,
  `base-uri 'none'`,
  `form-action 'none'`,
].join('; ')

export function galleryHtml({ runs, notes }: Gallery): string {
  const written = notes.map((note) => `<p>${escapeHtml(printable(note))}</p>\n`).join('')
  const data = escapedJson(runs.map(shownRun))
  return `${BEGINNING}
<meta http-equiv="Content-Security-Policy" content="${POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>Gallery</title>
<style>${STYLE}</style>
</head>
<body>
${body.replace('<!-- notes -->\n', () => written)}<script type="application/json" id="runs">${data}</script>
<script>${SCRIPT}</script>
</body>
</html>`
}

/** With texts as they are shown: without control characters and overrides of the reading direction. */
const shownRun = (run: GalleryRun): GalleryRun => ({
  ...run,
  id: printable(run.id),
  prompt: run.prompt
    .split(/\r\n|[\n\r]/)
    .map(printable)
    .join('\n')
    .trim(),
  model: printable(run.model),
  where: printable(run.where),
  files: run.files.map((file) => ({ ...file, name: printable(file.name) })),
})

/** JSON within a `script` element: with no `<`, nothing ends the element or begins a comment. */
const escapedJson = (value: unknown): string =>
  escapeControls(JSON.stringify(value)).replace(
    /[<>&\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )

const escapeHtml = (text: string): string =>
  text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`)

/** The path of a file from the folder of the page, and the same as a URL. */
export function linkTo(
  folder: string,
  path: string,
  paths: Pick<typeof posix, 'relative' | 'sep'>,
): { readonly name: string; readonly href: string } {
  const name = paths.relative(folder, path)
  // On another drive of Windows.
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

/** Others that a browser or the system opens without running anything in them. */
const FURTHER: readonly string[] = ['glb', 'gltf', 'ply', 'stl', 'txt', 'zip']

const extensionOf = (path: string): string => extname(path).slice(1).toLowerCase()

/** How the page shows a file: by the content type of its download, else by its extension. */
export function mediaOf(path: string, contentType = ''): Media {
  const [, kind] = /^(image|video|audio)\//.exec(contentType) ?? []
  if (kind !== undefined) return kind as Media
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
