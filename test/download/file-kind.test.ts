import { expect, it } from 'vitest'
import { fitsExtension, kindOf, misnamed } from '../../src/download/file-kind.js'
import { JPEG, MP4, PNG } from './download-setup.js'

const svg = Buffer.from('<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"/>')
const unknown = Buffer.from('what is this')

it.each<[string, Uint8Array, string | undefined, string, string, string]>([
  ['bytes alone', PNG, undefined, 'png', 'image/png', 'bytes'],
  ['bytes against the header', JPEG, 'image/png', 'jpg', 'image/jpeg', 'bytes'],
  ['a video', MP4, 'application/octet-stream', 'mp4', 'video/mp4', 'bytes'],
  ['the header', unknown, 'text/plain; charset=utf-8', 'txt', 'text/plain', 'header'],
  ['more than its container', svg, 'image/svg+xml', 'svg', 'image/svg+xml', 'header'],
  ['its container', svg, 'application/octet-stream', 'xml', 'application/xml', 'bytes'],
  ['no known header', unknown, 'binary/octet-stream', 'bin', 'application/octet-stream', 'nothing'],
  ['a hostile header', unknown, '__proto__', 'bin', 'application/octet-stream', 'nothing'],
  ['nothing', new Uint8Array(), undefined, 'bin', 'application/octet-stream', 'nothing'],
  ['a broken beginning', PNG.subarray(0, 9), undefined, 'bin', 'application/octet-stream', 'nothing'],
])('the type of a file is told by %s', async (_, head, header, extension, contentType, from) => {
  expect(await kindOf({ head, contentType: header })).toEqual({ extension, contentType, from })
})

it.each([
  ['a.jpg', 'jpg', true],
  ['a.png', 'apng', true],
  ['a.m4v', 'mp4', true],
  ['a.mp4', 'mov', true],
  ['a', 'png', true],
  ['.hidden', 'png', true],
  ['a.md', 'txt', true],
  ['a.png', 'jpg', false],
  ['a.mp4', 'webm', false],
  ['a.v2', 'png', false],
])('a name %j for a %s: %s', (path, extension, fits) => {
  expect(fitsExtension(path, extension)).toBe(fits)
})

it('a name brings a warning when its extension does not fit the known kind', () => {
  const jpg = { extension: 'jpg', contentType: 'image/jpeg' } as const
  expect(misnamed('a.png', { ...jpg, from: 'bytes' })).toMatchInlineSnapshot(
    `"a.png is a jpg file (image/jpeg) according to its content; its name was kept. A name that fits: -o a.jpg"`,
  )
  expect(misnamed('a.png', { ...jpg, from: 'header' })).toMatchInlineSnapshot(
    `"a.png is a jpg file (image/jpeg) according to the host; its name was kept. A name that fits: -o a.jpg"`,
  )
  expect(misnamed('a.png', { ...jpg, from: 'nothing' })).toBeUndefined()
  expect(misnamed('a.jpeg', { ...jpg, from: 'bytes' })).toBeUndefined()
})
