/** The page as text: whatever the strings are, they stay within one block of JSON. */
import { createHash } from 'node:crypto'
import { posix, win32 } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  canBeOpened,
  type Gallery,
  type GalleryRun,
  galleryHtml,
  isGallery,
  linkTo,
  mediaOf,
} from '../../src/gallery/index.js'
import { printable } from '../../src/protocol/text.js'
import { anyCharacter } from '../support/any-character.js'

const FILE = { name: 'a.png', href: 'a.png', media: 'image', ratio: 1, isOpened: true } as const

const RUN: GalleryRun = {
  ...{ id: 'run_1', prompt: 'a fox', model: 'acme/still-1', labels: [] },
  time: 0,
  files: [FILE],
}

const pageOf = (runs: readonly Partial<GalleryRun>[], notes: Gallery['notes'] = []): string =>
  galleryHtml({ runs: runs.map((run) => ({ ...RUN, ...run })), notes })

const START = '<script type="application/json" id="runs">'

/** The page before the data, the data, and the page after it. */
function partsOf(html: string): readonly [string, string, string] {
  const at = html.indexOf(START) + START.length
  const end = html.indexOf('</script>', at)
  return [html.slice(0, at), html.slice(at, end), html.slice(end)]
}

const runsIn = (html: string): GalleryRun[] => JSON.parse(partsOf(html)[1])

const text = fc.string({ unit: anyCharacter })
const hostile = fc.oneof(
  text,
  fc.constantFrom('</script><img src=x onerror=alert(1)>', '<!--<script>', ']]>'),
  fc.constantFrom('\u202egnp.exe', '\u0000\u001b[2J', '\ud800'),
)

describe('the data block', () => {
  it('stays within its block, whatever the strings are', () => {
    const [before, , after] = partsOf(pageOf([{}]))
    fc.assert(
      fc.property(hostile, hostile, hostile, hostile, (prompt, id, model, name) => {
        const html = pageOf([{ prompt, id, model, files: [{ ...FILE, name }] }])
        const parts = partsOf(html)
        expect([parts[0], parts[2]]).toEqual([before, after])
        expect(parts[1]).not.toMatch(/[<>&\u2028\u2029\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/)
        expect(runsIn(html)).toMatchObject([
          {
            id: printable(id),
            model: printable(model),
            files: [{ name: printable(name) }],
          },
        ])
      }),
    )
  })

  it.each([
    ['a\nb\r\nc\rd', 'a\nb\nc\nd'],
    ['a\u001b[31mfox\u0000', 'a[31mfox'],
    ['', ''],
  ])('shows the prompt %j as %j', (prompt, shown) =>
    expect(runsIn(pageOf([{ prompt }]))[0]?.prompt).toBe(shown),
  )

  it('never acts as a template or comment of the page', () => {
    const prompt = '<!-- notes --> $& $1 {runs}'
    expect(runsIn(pageOf([{ prompt }], ['$& kept']))[0]?.prompt).toBe(prompt)
    expect(pageOf([], ['$& <b>kept</b>'])).toContain('<p>$&#38; &#60;b&#62;kept&#60;/b&#62;</p>')
  })
})

describe('the page', () => {
  const html = pageOf([{}])

  it('contains its styles and its script', () => {
    // Vitest leaves styles out unless its configuration has `css`.
    expect(html).toMatch(/<style>[^<]*#grid[^<]*dialog\[open\]/)
    expect(html).toMatch(/<script>[\s\S]*function unitsOf[\s\S]*function move/)
    expect(html).not.toMatch(/^(import|export) /m)
  })

  it('can be recognized by its first lines', () => {
    expect(isGallery(html)).toBe(true)
    expect(isGallery('<!doctype html>\n<html lang="en">')).toBe(false)
  })

  it('allows its own script and styles by their hash, and no network', () => {
    const [, policy = ''] = /Content-Security-Policy" content="([^"]*)"/.exec(html) ?? []
    const hashOf = (tag: string) => {
      const [, inner = ''] = new RegExp(`<${tag}>([\\s\\S]*?)</${tag}>`).exec(html) ?? []
      return `'sha256-${createHash('sha256').update(inner).digest('base64')}'`
    }
    expect(policy).toContain(`script-src ${hashOf('script')};`)
    expect(policy).toContain(`style-src ${hashOf('style')};`)
    expect(policy).toMatch(/^default-src 'none'; /)
    expect(policy).not.toMatch(/https?:|unsafe|\*/)
    expect(html.replace(/<(script|style)[\s\S]*?<\/\1>/g, '')).not.toMatch(/https?:|\bsrc=|\bon\w+=|\bstyle=/)
  })

  it('stays identical for identical values', () => expect(pageOf([{}])).toBe(html))
})

it.each<[string, string, string, typeof posix]>([
  ['/w', '/w/fox.png', 'fox.png', posix],
  ['/w', '/w/a b/x.png', 'a%20b/x.png', posix],
  ['/w/out', '/w/fox.png', '../fox.png', posix],
  ['/w', '/w/#1 100%?.png', '%231%20100%25%3F.png', posix],
  ['/w', '/w/"q"\'<>&.png', `%22q%22'%3C%3E%26.png`, posix],
  ['/w', '/w/\ud800.png', '%EF%BF%BD.png', posix],
  ['C:\\w', 'C:\\w\\a b\\x.png', 'a%20b/x.png', win32],
  ['C:\\w', 'D:\\x y.png', 'file:///D:/x%20y.png', win32],
])('a link leads from %j to %j as %j', (folder, path, href, platform) =>
  expect(linkTo(folder, path, platform).href).toBe(href),
)

describe('the media of a file', () => {
  it.each([
    ['a.png', 'image/png', 'image'],
    ['a.bin', 'video/mp4', 'video'],
    ['a.MP4', 'application/octet-stream', 'video'],
    ['a.webp', undefined, 'image'],
    ['a.flac', undefined, 'audio'],
    ['a.glb', 'model/gltf-binary', 'file'],
    ['a.constructor', undefined, 'file'],
    ['a', undefined, 'file'],
  ])('of %s with the type %s are %s', (path, contentType, media) =>
    expect(mediaOf(path, contentType)).toBe(media),
  )

  it.each([
    ['a.png', true],
    ['a.glb', true],
    ['a.svg', false],
    ['a.HTML', false],
    ['a', false],
  ])('%s is opened by a link: %s', (path, isOpened) => expect(canBeOpened(path)).toBe(isOpened))
})
