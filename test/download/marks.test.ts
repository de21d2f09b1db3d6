/** Marks of synthetic media: what is found in which file, and what hostile files can do. */
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { deflateSync } from 'node:zlib'
import fc from 'fast-check'
import sharp from 'sharp'
import { describe, expect, it } from 'vitest'
import { findMarks, MAX_READ_BYTES, MAX_READS, marksOfFile } from '../../src/download/marks.js'
import { ONE_PIXEL_PNG } from '../support/engines.js'
import {
  actionOf,
  box,
  C2PA_UUID,
  cborText,
  jpegSegment,
  type Marked,
  manifestOf,
  markedJpeg,
  markedMp4,
  markedPng,
  markedWebp,
  pngChunk,
  u32,
  uriOf,
  XMP_UUID,
  xmpOf,
  xmpWith,
} from '../support/marked-files.js'
import { tinyVideo } from '../support/tiny-video.js'
import { answer, download, fetchOf, newFolder, once, sha256, toPath } from './download-setup.js'

const TERM = 'trainedAlgorithmicMedia'
const picture = sharp({ create: { width: 16, height: 16, channels: 3, background: 'teal' } })
const BASES = {
  png: await picture.png().toBuffer(),
  jpg: await picture.jpeg().toBuffer(),
  webp: await picture.webp().toBuffer(),
  mp4: Buffer.from(await tinyVideo(2)),
}
const BUILDERS = { png: markedPng, jpg: markedJpeg, webp: markedWebp, mp4: markedMp4 }
type Type = keyof typeof BASES
const TYPES = Object.keys(BASES) as Type[]
const build = (type: Type, marked: Marked): Buffer => BUILDERS[type](marked, BASES[type])

/** Reads as from a file, and counts. */
function lookAt(bytes: Uint8Array, size = bytes.length) {
  const counts = { reads: 0, bytes: 0 }
  const marks = findMarks({
    size,
    read(offset, length) {
      if (!(offset >= 0 && length >= 0 && Number.isSafeInteger(offset + length)))
        expect.unreachable(`${length} bytes at ${offset}`)
      counts.reads++
      counts.bytes += length
      return Buffer.from(bytes.subarray(offset, offset + length))
    },
  })
  return { ...counts, marks: [marks.content_credentials, marks.digital_source_type] as const }
}
const marksOf = (bytes: Uint8Array) => lookAt(bytes).marks

/** A PNG with this chunk. */
const withChunk = (type: string, content: Buffer): Buffer =>
  Buffer.concat([ONE_PIXEL_PNG.subarray(0, 33), pngChunk(type, content), ONE_PIXEL_PNG.subarray(33)])

/** Another prefix of the same namespace. */
const E = 'xmlns:e="http://iptc.org/std/Iptc4xmpExt/2008-02-29/"'
/** IPTC's property as an attribute, and as an element. */
const attribute = (value: string, prefix = 'Iptc4xmpExt') => `${prefix}:DigitalSourceType="${value}"`
const element = (value: string, attributes = '') =>
  `<Iptc4xmpExt:DigitalSourceType${attributes}>${value}</Iptc4xmpExt:DigitalSourceType>`
const description = (text: string) => `<dc:description>${text}</dc:description>`
const inXmp = (attributes: string, elements?: string) =>
  marksOf(markedPng({ xmp: xmpOf(attributes, elements) }))[1]
const inManifest = (...assertions: readonly (Buffer | string)[]) =>
  marksOf(markedPng({ manifest: manifestOf(...assertions) }))[1]

describe('marks', () => {
  it.each(TYPES)('of a real %s: a manifest, XMP, both, none', (type) => {
    const manifest = manifestOf(actionOf(TERM))
    const xmp = xmpWith('compositeSynthetic')
    expect(marksOf(build(type, {}))).toEqual([false, null])
    expect(marksOf(build(type, { manifest: manifestOf('') }))).toEqual([true, null])
    expect(marksOf(build(type, { manifest }))).toEqual([true, TERM])
    expect(marksOf(build(type, { xmp }))).toEqual([false, 'compositeSynthetic'])
    expect(marksOf(build(type, { manifest, xmp }))).toEqual([true, 'compositeSynthetic'])
  })

  it('finds marks behind the pixels of a PNG, and in boxes of any of the three purposes', () => {
    const { png, mp4 } = BASES
    const chunks = markedPng({ manifest: manifestOf(''), xmp: xmpWith(TERM) }).subarray(33)
    expect(marksOf(Buffer.concat([png.subarray(0, -12), chunks]))).toEqual([true, TERM])
    const manifest = manifestOf('')
    for (const purpose of ['manifest', 'original', 'update', 'merkle'])
      expect(marksOf(markedMp4({ manifest }, mp4, purpose))).toEqual([purpose !== 'merkle', null])
    // A box with a length of 64 bits.
    const long = Buffer.concat([u32(1), Buffer.from('mdat'), u32(0), u32(24), Buffer.alloc(8)])
    const xmp = box('uuid', XMP_UUID, xmpWith(TERM))
    expect(marksOf(Buffer.concat([box('ftyp', 'qt  '), long, xmp]))).toEqual([false, TERM])
  })

  it('ignores marks behind the end of a picture', () => {
    const { png, webp } = BASES
    const marked = { manifest: manifestOf(''), xmp: xmpWith(TERM) }
    expect(marksOf(Buffer.concat([png, markedPng(marked).subarray(33)]))).toEqual([false, null])
    expect(marksOf(Buffer.concat([webp, markedWebp(marked, webp).subarray(webp.length)]))).toEqual([
      false,
      null,
    ])
  })

  it('in a JPEG: also in XMP of several segments', () => {
    const [before, behind] = [xmpWith('print').slice(0, 200), xmpWith(TERM)]
    const extension = `http://ns.adobe.com/xmp/extension/\0${'a'.repeat(32)}\0\0\0\0\0\0\0\0${behind}`
    const jpeg = Buffer.concat([
      ...[BASES.jpg.subarray(0, 2), jpegSegment(0xe1, `http://ns.adobe.com/xap/1.0/\0${before}`)],
      ...[jpegSegment(0xe1, extension), BASES.jpg.subarray(2)],
    ])
    expect(marksOf(jpeg)).toEqual([false, TERM])
  })

  it('of synthetic media come before others, also those of XMP and of a manifest together', () => {
    const manifest = manifestOf(actionOf(TERM))
    expect(marksOf(markedPng({ manifest, xmp: xmpWith('digitalCapture') }))).toEqual([true, TERM])
  })

  it('ignores chunks and boxes with other content', () => {
    const other = Buffer.concat([box('jumb', box('jumd', 'json')), Buffer.from(uriOf(TERM))])
    for (const type of TYPES) expect(marksOf(build(type, { manifest: other }))).toEqual([false, null])
    expect(marksOf(withChunk('caBX', Buffer.alloc(0)))).toEqual([false, null])
  })

  it('finds marks in the XMP that a real encoder writes', async () => {
    const noise = { type: 'gaussian', mean: 128, sigma: 30 } as const
    const large = sharp({ create: { width: 800, height: 600, channels: 3, background: 'teal', noise } })
    const withXmp = large.withXmp(xmpWith(TERM))
    for (const file of [withXmp.clone().png(), withXmp.clone().jpeg(), withXmp.clone().webp()])
      expect(marksOf(await file.toBuffer())).toEqual([false, TERM])
  })

  it.each<[name: string, term: string | null, attributes: string, elements?: string]>([
    ['an attribute', TERM, attribute(uriOf(TERM))],
    ['with https', TERM, attribute(uriOf(TERM).replace('http', 'https')).replaceAll('"', "'")],
    ['any prefix', TERM, `${E} e:DigitalSourceType = "${uriOf(TERM)}"`],
    ['the same name in another namespace', null, `xmlns:my="urn:x" ${attribute(TERM, 'my')}`],
    ['after a value with ">"', TERM, `e:Credit="a > b" ${attribute(uriOf(TERM))}`],
    ['an element with an attribute', TERM, '', element(uriOf(TERM), ' xml:lang="en"')],
    [
      'a resource after another attribute',
      TERM,
      '',
      `<Iptc4xmpExt:DigitalSourceType xml:lang="x" rdf:resource="${uriOf(TERM)}"/>`,
    ],
    ['a value that quotes it', null, `e:Instructions='make ${attribute(uriOf(TERM))} fox'`],
    ['a comment', null, '', `<!-- <a ${attribute(uriOf(TERM))}/> -->`],
    ['CDATA', null, '', description(`<![CDATA[${element(uriOf(TERM))}]]>`)],
    ['an element', 'digitalCapture', '', element(`\n  ${uriOf('digitalCapture')}\n`)],
    ['a resource', TERM, '', `<Iptc4xmpExt:DigitalSourceType\n rdf:resource="${uriOf(TERM)}"/>`],
    ['a term without its URI', TERM, `${E} ${attribute(TERM, 'e')}`],
    ['text that quotes it', null, '', description(attribute(uriOf(TERM), 'e'))],
    ['text about it', null, '', description(uriOf(TERM))],
    ['another property', null, `${E} ${attribute('', 'e')} e:Credit="${uriOf(TERM)}"`],
    ['another vocabulary', null, attribute('http://cv.iptc.org/newscodes/genre/trained')],
    ['no scheme', null, attribute(uriOf(TERM).replace('http', 'x'))],
    ['no term', null, attribute(uriOf(''))],
    ['other characters', null, attribute(uriOf('a\x1b[31m'))],
    ['a long term', null, attribute(uriOf('a'.repeat(65)))],
    ['the longest term', 'a'.repeat(64), attribute(uriOf('a'.repeat(64)))],
    ['the last one', 'print', `${E} ${attribute(uriOf('b'), 'e')} ${attribute(uriOf('print'))}`],
  ])('in XMP: %s', (_, term, attributes, elements) => {
    expect(inXmp(attributes, elements)).toBe(term)
  })

  it('in compressed XMP of a PNG, but not in more than is read', () => {
    const packed = (head: string, xmp: string) =>
      marksOf(withChunk('iTXt', Buffer.concat([Buffer.from(head), deflateSync(xmp)])))[1]
    const head = 'XML:com.adobe.xmp\0\x01\0en\0XMP\0'
    expect(packed(head, xmpWith(TERM))).toBe(TERM)
    expect(packed(head, `${' '.repeat(200_000)}${xmpWith(TERM)}`)).toBe(TERM)
    // A bomb: 10 MB in 10 kB.
    expect(packed(head, `${xmpWith(TERM)}${' '.repeat(1e7)}`)).toBeNull()
    expect(packed(`${head}x`, xmpWith(TERM))).toBeNull()
    expect(packed('XML:com.adobe.xmp\0\x01', xmpWith(TERM))).toBeNull()
  })

  it('in a manifest: CBOR, JSON, the term of synthetic media before others, and across pieces', () => {
    const json = (term: string) => `{"Iptc4xmpExt:DigitalSourceType": "${uriOf(term)}"}`
    expect(inManifest(json(TERM))).toBe(TERM)
    expect(inManifest(actionOf(TERM), actionOf('digitalCapture'), json('humanEdits'))).toBe(TERM)
    expect(inManifest(actionOf('digitalCapture'), actionOf('humanEdits'))).toBe('humanEdits')
    expect(inManifest(uriOf(TERM))).toBeNull()
    // A prompt that quotes it.
    expect(inManifest(Buffer.concat([cborText('prompt'), cborText(json(TERM))]))).toBeNull()
    expect(inManifest(JSON.stringify({ prompt: json(TERM) }))).toBeNull()
    expect(inManifest(`a DigitalSourceType: ${uriOf(TERM)} fox`)).toBeNull()
    for (let padding = 65_300; padding < 65_550; padding += 5)
      expect(inManifest(Buffer.alloc(padding), actionOf(TERM))).toBe(TERM)
    // More than is read: whether there is a manifest is still known, and so is the XMP behind it.
    const manifest = manifestOf(Buffer.alloc(3 * MAX_READ_BYTES), actionOf(TERM))
    expect(marksOf(markedPng({ manifest }))).toEqual([true, null])
    expect(marksOf(markedPng({ manifest, xmp: xmpWith(TERM) }))).toEqual([true, TERM])
  })

  it('gives null for a file that cannot be read, and for formats without support', () => {
    const folder = newFolder()
    const none = { content_credentials: null, digital_source_type: null }
    expect(marksOfFile(join(folder, 'missing.png'))).toEqual(none)
    expect(marksOfFile(folder)).toEqual(none)
    if (process.platform !== 'win32') {
      execFileSync('mkfifo', [join(folder, 'pipe.png')])
      expect(marksOfFile(join(folder, 'pipe.png'))).toEqual(none)
    }
    for (const head of ['', 'GIF89a', '\x1a\x45\xdf\xa3', 'ID3', 'glTF', 'RIFF\0\0\0\0WAVEfmt ', '{"a":1}'])
      expect(marksOf(Buffer.from(`${head}${xmpWith(TERM)}`, 'latin1'))).toEqual([null, null])
    const path = join(folder, 'a.bin')
    writeFileSync(path, build('jpg', { manifest: manifestOf(actionOf(TERM)) }))
    expect(marksOfFile(path)).toEqual({ content_credentials: true, digital_source_type: TERM })
  })
})

describe('a download', () => {
  it.each(TYPES)(
    'of a %s with marks is what the host sent, byte for byte, and reports them',
    async (type) => {
      const bytes = build(type, { manifest: manifestOf(actionOf('digitalCapture')), xmp: xmpWith(TERM) })
      const path = join(newFolder(), `fox.${type}`)
      const { fetch } = fetchOf(() => answer(() => once(bytes)))
      const marks = { content_credentials: true, digital_source_type: TERM }
      const downloaded = await download({ fetch, ...toPath(path) })
      expect(downloaded).toMatchObject({ ok: true, file: { sha256: sha256(bytes), ...marks }, warnings: [] })
      expect(readFileSync(path).equals(bytes)).toBe(true)
      // Found on the disk by a later command. Earlier versions recorded no marks.
      const earlier = [{ path, bytes: bytes.length, sha256: sha256(bytes), url: '', content_type: '' }]
      expect(await download({ fetch: fetchOf().fetch, earlier, ...toPath(path) })).toMatchObject({
        file: marks,
      })
    },
  )
})

/** A lie about a length, at each place where a length is. */
const HOSTILE: readonly (readonly [name: string, bytes: Buffer])[] = [
  ...[0, 1, 2, 7, 0x7fffffff, 0xffffffff].flatMap((length) => [
    [
      `PNG, ${length}`,
      Buffer.concat([ONE_PIXEL_PNG.subarray(0, 8), u32(length), Buffer.from('caBX')]),
    ] as const,
    [`WebP, ${length}`, Buffer.concat([Buffer.from('RIFF\0\0\0\0WEBPC2PA'), u32(length).reverse()])] as const,
    [`MP4, ${length}`, Buffer.concat([u32(length), Buffer.from('ftyp'), Buffer.alloc(8, 0xff)])] as const,
    [
      `MP4 of 64 bits, ${length}`,
      Buffer.concat([u32(1), Buffer.from('ftyp'), u32(0xffffffff), u32(length), C2PA_UUID]),
    ] as const,
    [
      `JPEG, ${length}`,
      Buffer.concat([Buffer.from([0xff, 0xd8, 0xff, 0xeb]), u32(length).subarray(2)]),
    ] as const,
  ]),
]

/** Repeats a part behind a head up to 3 MiB. */
const many = (head: Buffer | string, part: Buffer | string): Buffer =>
  Buffer.concat([Buffer.from(head as string), Buffer.alloc(3 * MAX_READ_BYTES, part as string)])

const BOMB = Buffer.concat([Buffer.from('XML:com.adobe.xmp\0\0'), deflateSync(Buffer.alloc(262_144))])

/** 32,000 headers of JSON, each with a length up to the end, then terms. */
const OVERLAPPING = Buffer.concat([
  ...Array.from({ length: 32_000 }, (_, at) => Buffer.concat([u32(500_000 - 8 * at), Buffer.from('json')])),
  Buffer.from(`igitalSourceType":"${uriOf('a')}"`.repeat(3_600)).subarray(0, 244_000),
])

const HEADS = [
  ONE_PIXEL_PNG.subarray(0, 8),
  Buffer.from([0xff, 0xd8, 0xff]),
  Buffer.from('RIFF\0\0\0\0WEBP'),
  Buffer.concat([u32(16), Buffer.from('ftypmp42\0\0\0\0')]),
]

describe('a hostile file', () => {
  const holdsBounds = (bytes: Buffer, size?: number) => {
    const { reads, bytes: read, marks } = lookAt(bytes, size)
    expect(reads).toBeLessThanOrEqual(MAX_READS)
    expect(read).toBeLessThanOrEqual(MAX_READ_BYTES)
    expect([true, false, null]).toContain(marks[0])
    if (marks[1] !== null) expect(marks[1]).toMatch(/^[A-Za-z]{1,64}$/)
    return marks
  }

  it.each(HOSTILE)('with a wrong length ends: %s', (_, bytes) => {
    holdsBounds(bytes)
    // The file says that it is longer than its bytes: it is being truncated.
    holdsBounds(bytes, 2 ** 45)
  })

  it.each([
    ['empty PNG chunks', many(HEADS[0] ?? '', '\0\0\0\0aaaa\0\0\0\0'), null],
    ['XMP chunks', many(HEADS[0] ?? '', '\0\0\0\x12iTXtXML:com.adobe.xmp\0\0\0\0\0'), null],
    ['manifests', many(HEADS[0] ?? '', pngChunk('caBX', manifestOf(Buffer.alloc(40_000)))), true],
    // Only the first of them is read.
    ['bombs', many(HEADS[0] ?? '', pngChunk('zTXt', BOMB)), false],
    ['fill bytes', many(HEADS[1] ?? '', Buffer.from([0xff])), null],
    ['empty JPEG segments', many(HEADS[1] ?? '', Buffer.from([0xff, 0xe0, 0, 2])), null],
    ['empty WebP chunks', many('RIFF\xff\xff\xff\x7fWEBP', 'XMP \0\0\0\0'), null],
    ['empty boxes', many(HEADS[3] ?? '', '\0\0\0\x08free'), null],
    ['names of the property', many('', markedPng({ xmp: 'DigitalSourceType="'.repeat(9_999) })), false],
    ['URIs', many('', markedPng({ manifest: manifestOf(uriOf('').repeat(9_999)) })), true],
    ['boxes that claim the rest', many('', markedPng({ manifest: manifestOf(OVERLAPPING) })), true],
  ])('with many parts ends within the bounds: %s', (_, bytes, credentials) => {
    expect(holdsBounds(bytes)[0]).toBe(credentials)
  })

  it('of random bytes, or changed or cut anywhere, ends within the bounds', () => {
    const files = TYPES.map((type) =>
      build(type, { manifest: manifestOf(actionOf(TERM)), xmp: xmpWith(TERM) }),
    )
    const changed = fc
      .record({
        file: fc.constantFrom(...files),
        end: fc.nat({ max: 2_000 }),
        edits: fc.array(fc.tuple(fc.nat({ max: 400 }), fc.oneof(fc.constantFrom(0, 1, 255), fc.nat(255)))),
      })
      .map(({ file, end, edits }) => {
        const bytes = Buffer.from(file.subarray(0, end))
        for (const [at, value] of edits) if (at < bytes.length) bytes[at] = value
        return bytes
      })
    const random = fc
      .tuple(fc.constantFrom(...HEADS), fc.uint8Array({ maxLength: 400 }))
      .map((parts) => Buffer.concat(parts))
    fc.assert(
      fc.property(fc.oneof(changed, random), fc.constantFrom(undefined, 2 ** 40), (bytes, size) => {
        holdsBounds(bytes, size)
      }),
      { numRuns: 2_000 },
    )
  })

  it('reports what was found before a read error', () => {
    const bytes = markedPng({ manifest: manifestOf(''), xmp: xmpWith(TERM) })
    let left = 4
    const read = (at: number, length: number) => {
      if (--left < 0) throw new Error('EIO')
      return bytes.subarray(at, at + length)
    }
    expect(findMarks({ size: bytes.length, read })).toEqual({
      content_credentials: true,
      digital_source_type: null,
    })
  })
})
