import { expect, it } from 'vitest'
import { mediaContentType, mediaProblem, sourceFormOf } from '../../src/protocol/media.js'

const ftyp = (...brands: string[]) =>
  Buffer.from(`\0\0\0\x18ftyp${brands[0]}\0\0\0\0${brands.join('')}`, 'latin1')

it.each([['heic', 'mif1'], ['heix'], ['mif1', 'heic'], ['msf1']])(
  'a file that cannot be sent gets a command that converts it if it is a photo of a phone: %s',
  (...brands) => {
    expect(mediaContentType(ftyp(...brands), 'image')).toBeUndefined()
    expect(mediaProblem(ftyp(...brands), 'image')).toBe(
      'is a HEIC image. Convert it to JPEG first (`magick photo.heic photo.jpg`, on macOS ' +
        '`sips -s format jpeg photo.heic --out photo.jpg`)',
    )
  },
)

it.each([Buffer.from('no image'), Buffer.alloc(0), ftyp('isom')])(
  'another file that cannot be sent gets the list of types: %s',
  (bytes) => {
    expect(mediaProblem(bytes, 'image')).toBe('is not a PNG, JPEG, WebP, GIF or AVIF image')
  },
)

it('an AVIF image that has a brand of HEIF too can be sent', () => {
  expect(mediaContentType(ftyp('mif1', 'avif'), 'image')).toBe('image/avif')
})

it.each([
  ['https://x.example/a.png', 'url'],
  ['HTTP://x.example/a.png', 'url'],
  ['https://', 'invalid url'],
  ['data:image/png;base64,AA==', 'data'],
  ['DATA:,a', 'data'],
  ['run:run_1#2', 'run'],
  ['run:', 'path'],
  ['Run:fox.png', 'path'],
  ['row:hero', 'row'],
  ['Row:hero', 'row'],
  ['-', 'standard input'],
  [' ', 'blank'],
  ['refs/a.png', 'path'],
  ['C:\\a.png', 'path'],
] as const)('%s is one of %s', (text, form) => expect(sourceFormOf(text)).toBe(form))
