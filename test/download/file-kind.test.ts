import { describe, expect, it } from 'vitest'
import { fitsExtension, kindOf, misnamed } from '../../src/download/file-kind.js'
import { JPEG, MP4, PNG } from './download-setup.js'

const svg = Buffer.from('<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"/>')
const unknown = Buffer.from('what is this')

describe('what a file is', () => {
  it.each<[string, Uint8Array, string | undefined, string, string, string, string]>([
    ['bytes alone', PNG, undefined, '/x', 'png', 'image/png', 'bytes'],
    ['bytes against the header', JPEG, 'image/png', '/x.png', 'jpg', 'image/jpeg', 'bytes'],
    ['a video', MP4, 'application/octet-stream', '/x', 'mp4', 'video/mp4', 'bytes'],
    ['the header', unknown, 'text/plain; charset=utf-8', '/x.png', 'txt', 'text/plain', 'header'],
    ['the header in capitals', unknown, 'IMAGE/SVG+XML', '/x', 'svg', 'image/svg+xml', 'header'],
    ['more than its container', svg, 'image/svg+xml', '/x', 'svg', 'image/svg+xml', 'header'],
    ['its container', svg, 'application/octet-stream', '/x', 'xml', 'application/xml', 'bytes'],
    ['the URL', unknown, 'binary/octet-stream', '/a/b.WebM', 'webm', 'video/webm', 'url'],
    ['an ending that nobody knows', unknown, undefined, '/b.xyz', 'xyz', 'application/octet-stream', 'url'],
    ['no ending', unknown, undefined, '/v1.2', 'bin', 'application/octet-stream', 'nothing'],
    ['a hostile ending', unknown, undefined, '/a.p%2fng', 'bin', 'application/octet-stream', 'nothing'],
    ['a hostile header', unknown, '__proto__', '/x', 'bin', 'application/octet-stream', 'nothing'],
    ['nothing', new Uint8Array(), undefined, '/', 'bin', 'application/octet-stream', 'nothing'],
    ['a broken beginning', PNG.subarray(0, 9), undefined, '/', 'bin', 'application/octet-stream', 'nothing'],
  ])('is told by %s', async (_, head, header, path, extension, contentType, from) => {
    const url = new URL(path, 'https://host.example')
    expect(await kindOf({ head, contentType: header, url })).toEqual({ extension, contentType, from })
  })
})

describe('a name', () => {
  it.each([
    ['a.jpg', 'jpg', true],
    ['a.JPEG', 'jpg', true],
    ['a.jfif', 'jpg', true],
    ['a.png', 'apng', true],
    ['a.m4v', 'mp4', true],
    ['a.mov', 'mp4', true],
    ['a.mp4', 'mov', true],
    ['a.tiff', 'tif', true],
    ['a', 'png', true],
    ['.hidden', 'png', true],
    ['a.md', 'txt', true],
    ['a.png', 'jpg', false],
    ['a.mp4', 'webm', false],
    ['a.mp4', 'html', false],
    ['a.v2', 'png', false],
  ])('%j for a %s: %s', (path, extension, fits) => {
    expect(fitsExtension(path, extension)).toBe(fits)
  })

  it('that does not fit is worth a warning where the kind is known', () => {
    const jpg = { extension: 'jpg', contentType: 'image/jpeg' } as const
    expect(misnamed('a.png', { ...jpg, from: 'bytes' })).toMatchInlineSnapshot(
      `"a.png is a jpg file (image/jpeg) according to its content; its name was kept. To convert it: \`ffmpeg -i a.png a-converted.png\`"`,
    )
    expect(misnamed('a.png', { ...jpg, from: 'header' })).toMatchInlineSnapshot(
      `"a.png is a jpg file (image/jpeg) according to the host; its name was kept. To convert it: \`ffmpeg -i a.png a-converted.png\`"`,
    )
    expect(misnamed('a.png', { ...jpg, from: 'url' })).toBeUndefined()
    expect(misnamed('a.jpeg', { ...jpg, from: 'bytes' })).toBeUndefined()
  })

  it.each([
    ['out/a fox.WEBP', 'png', `ffmpeg -i 'out/a fox.WEBP' 'out/a fox-converted.WEBP'`],
    [`fox's.webp`, 'png', `ffmpeg -i 'fox'\\''s.webp' 'fox'\\''s-converted.webp'`],
    ['-fox.jpeg', 'webp', 'ffmpeg -i ./-fox.jpeg -frames:v 1 ./-fox-converted.jpeg'],
    ['16:9.png', 'avif', 'ffmpeg -i ./16:9.png -frames:v 1 ./16:9-converted.png'],
    ['/tmp/16:9.png', 'gif', 'ffmpeg -i /tmp/16:9.png -frames:v 1 /tmp/16:9-converted.png'],
    ['a%d.webp', 'png', undefined],
    ['fox.webm', 'mp4', 'ffmpeg -i fox.webm fox-converted.webm'],
    ['fox.png', 'mp4', undefined],
    ['fox.mp4', 'png', undefined],
    ['fox.png', 'html', undefined],
    ['fox.heic', 'png', undefined],
  ])('of %j for a %s: the command that converts it', (path, extension, command) => {
    const warning = misnamed(path, { extension, contentType: 'any/type', from: 'bytes' })
    expect(/`(.*)`/.exec(warning ?? '')?.[1]).toBe(command)
  })
})
