/**
 * Finds what a file says about its origin: whether it has Content Credentials (a C2PA manifest), and the digital source type
 * of IPTC in its XMP or its manifest. Verifies nothing: anyone can write or remove such marks.
 *
 * Knows PNG, JPEG, WebP, and MP4 with its relatives (MOV, M4A, AVIF, HEIC). The files are untrusted: the numbers of reads
 * and of bytes are bounded.
 */
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'
import { inflateSync, constants as zlib } from 'node:zlib'
import type { FileMarks } from '../protocol/media.js'

export interface MarksSource {
  /** In bytes. */
  readonly size: number
  /** Returns `length` bytes at `offset`, fewer at the end of the file. May throw. */
  read(offset: number, length: number): Buffer
}

/** A chunk, segment or box takes at least one read. Encoders write PNGs in chunks of 8 KiB. */
export const MAX_READS = 16_384
export const MAX_READ_BYTES = 1_048_576
const MAX_XMP_BYTES = 65_536
/** Manifests contain thumbnails. The rest of `MAX_READ_BYTES` is for the other parts of the file. */
const MAX_MANIFEST_BYTES = 524_288

/** Of a file that could not be read. */
export const NO_MARKS: FileMarks = { content_credentials: null, digital_source_type: null }

/** Returns the marks of the file at `path`. Never throws, and does not wait for the writer of a pipe. */
export function marksOfFile(path: string): FileMarks {
  let handle: number | undefined
  try {
    // Windows does not have O_NONBLOCK.
    const file = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0))
    handle = file
    const stats = fstatSync(file)
    if (!stats.isFile()) return NO_MARKS
    return findMarks({
      size: stats.size,
      read(offset, length) {
        const buffer = Buffer.allocUnsafe(length)
        return buffer.subarray(0, readSync(file, buffer, 0, length, offset))
      },
    })
  } catch {
    return NO_MARKS
  } finally {
    if (handle !== undefined) closeSync(handle)
  }
}

/** Never throws. `content_credentials` is null for other formats, and if a bound was reached or a read failed before. */
export function findMarks(source: MarksSource): FileMarks {
  const found: Findings = { hasManifest: false, manifest: '', xmp: '' }
  let isKnown = false
  try {
    isKnown = lookAt(bounded(source), found)
  } catch {
    // Keep the marks that were found until then.
  }
  return {
    content_credentials: found.hasManifest || (isKnown ? false : null),
    digital_source_type: preferred([...termsInManifest(found.manifest), ...termsInXmp(found.xmp)]) ?? null,
  }
}

interface Findings {
  hasManifest: boolean
  /** Bytes of the manifests as Latin-1, without those beyond the limit. */
  manifest: string
  xmp: string
}

/** Throws when a bound is reached. */
function bounded({ size, read }: MarksSource): MarksSource {
  let [reads, bytes] = [0, 0]
  return {
    size,
    read(offset, wanted) {
      const length = Math.max(0, Math.min(wanted, size - offset))
      reads++
      bytes += length
      if (reads > MAX_READS || bytes > MAX_READ_BYTES) throw new Error('a bound of reads was reached')
      return read(offset, length)
    },
  }
}

/** Returns whether the format is known. */
function lookAt(file: MarksSource, found: Findings): boolean {
  const head = file.read(0, 12).toString('latin1')
  if (head.startsWith('\x89PNG\r\n\x1a\n')) lookAtPng(file, found)
  else if (head.startsWith('\xff\xd8\xff')) lookAtJpeg(file, found)
  else if (/^RIFF.{4}WEBP$/s.test(head)) lookAtWebp(file, found)
  else if (/^.{4}ftyp/s.test(head)) lookAtBoxes(file, found)
  else return false
  return true
}

/** The content of a chunk, segment or box. The length is what the file declares. */
interface Part {
  readonly at: number
  readonly length: number
}

const after = ({ at, length }: Part, bytes: number): Part => ({ at: at + bytes, length: length - bytes })

const textOf = (file: MarksSource, { at, length }: Part, maxBytes = MAX_XMP_BYTES): string =>
  file.read(at, Math.min(length, maxBytes)).toString('latin1')

function lookAtPng(file: MarksSource, found: Findings): void {
  const xmpName = 'XML:com.adobe.xmp\0'
  for (let at = 8; at + 12 <= file.size; ) {
    const head = file.read(at, 8)
    const type = head.toString('latin1', 4)
    const part = { at: at + 8, length: head.readUInt32BE() }
    // What follows is not part of the picture.
    if (type === 'IEND') return
    if (type === 'caBX') readManifest(file, part, found)
    // Only the first with a text, because each may be a bomb, which takes 1 ms.
    else if (found.xmp === '' && /[iz]TXt/.test(type) && textOf(file, part, xmpName.length) === xmpName)
      found.xmp = pngText(type, textOf(file, after(part, xmpName.length)))
    // A checksum follows.
    at = part.at + part.length + 4
  }
}

/**
 * Returns the text after its name. Programs that use libvips compress XMP (zTXt). An iTXt has a flag for that, a method, a
 * language and a translated name before its text.
 */
function pngText(type: string, content: string): string {
  if (type === 'iTXt' && content[0] !== '\x01') return content
  const begin = type === 'zTXt' ? 1 : content.indexOf('\0', content.indexOf('\0', 2) + 1) + 1
  // The content may be cut.
  const options = { maxOutputLength: 4 * MAX_XMP_BYTES, finishFlush: zlib.Z_SYNC_FLUSH }
  try {
    return inflateSync(Buffer.from(content.slice(begin), 'latin1'), options).toString('latin1')
  } catch {
    return ''
  }
}

function lookAtJpeg(file: MarksSource, found: Findings): void {
  const [fill, app1, app11, scan] = [0xff, 0xe1, 0xeb, 0xda]
  const xmpName = 'http://ns.adobe.com/xap/1.0/\0'
  // Its segments have an id, the length of the whole and an offset before their text.
  const extensionName = 'http://ns.adobe.com/xmp/extension/\0'
  let manifest: string | undefined
  for (let at = 2; at + 4 <= file.size; ) {
    const head = file.read(at, 4)
    const marker = head[1] ?? 0
    const part = { at: at + 4, length: head.readUInt16BE(2) - 2 }
    at = marker === fill ? at + 1 : part.at + part.length
    if (marker === fill) continue
    // The metadata ends at the scan.
    if (head[0] !== 0xff || marker === scan || part.length < 0) return
    const name = marker === app1 || marker === app11 ? textOf(file, part, extensionName.length) : ''
    if (marker === app1 && name.startsWith(xmpName)) found.xmp += textOf(file, after(part, xmpName.length))
    if (marker === app1 && name === extensionName)
      found.xmp += textOf(file, after(part, extensionName.length + 40))
    if (marker !== app11 || !name.startsWith('JP')) continue
    // A box of several segments: each has the number of the box, and repeats its head of 8 bytes.
    const box = name.slice(2, 4)
    if (box === manifest) addToManifest(file, after(part, 16), found)
    else if (readManifest(file, after(part, 8), found)) manifest = box
  }
}

function lookAtWebp(file: MarksSource, found: Findings): void {
  const end = Math.min(file.size, 8 + file.read(4, 4).readUInt32LE())
  for (let at = 12; at + 8 <= end; ) {
    const head = file.read(at, 8)
    const type = head.toString('latin1', 0, 4)
    const part = { at: at + 8, length: head.readUInt32LE(4) }
    if (type === 'C2PA') readManifest(file, part, found)
    else if (type === 'XMP ') found.xmp += textOf(file, part)
    at = part.at + part.length + (part.length % 2)
  }
}

const C2PA_BOX = Buffer.from('d8fec3d61b0e483c92975828877ec481', 'hex').toString('latin1')
const XMP_BOX = Buffer.from('be7acfcb97a942e89c71999491e3afac', 'hex').toString('latin1')

function lookAtBoxes(file: MarksSource, found: Findings): void {
  for (let at = 0; at + 16 <= file.size; ) {
    const head = file.read(at, 16)
    const size = head.readUInt32BE()
    // 0: up to the end; 1: a longer number follows.
    const boxBytes = size === 0 ? file.size - at : size === 1 ? Number(head.readBigUInt64BE(8)) : size
    const part = after({ at, length: boxBytes }, size === 1 ? 16 : 8)
    if (part.length < 0) return
    if (head.toString('latin1', 4, 8) === 'uuid') {
      // The version, the purpose and an offset follow the UUID.
      const name = textOf(file, part, 29)
      const [purpose] = /^(manifest|original|update)\0/.exec(name.slice(20)) ?? []
      if (name.startsWith(XMP_BOX)) found.xmp += textOf(file, after(part, XMP_BOX.length))
      else if (name.startsWith(C2PA_BOX) && purpose !== undefined)
        readManifest(file, after(part, 20 + purpose.length + 8), found)
    }
    at += boxBytes
  }
}

/** Reads a manifest, unless the part has other content. Returns whether it is one. */
function readManifest(file: MarksSource, part: Part, found: Findings): boolean {
  if (!/^.{4}jumb.{4}jumdc2pa/s.test(textOf(file, part, 20))) return false
  found.hasManifest = true
  addToManifest(file, part, found)
  return true
}

function addToManifest(file: MarksSource, part: Part, found: Findings): void {
  found.manifest += textOf(file, part, MAX_MANIFEST_BYTES - found.manifest.length)
}

/** A manifest also describes what a file was made from: a term of synthetic media comes first, then the last one. */
const preferred = (terms: readonly string[]): string | undefined =>
  terms.findLast((term) => /algorithmicMedia$|synthetic$/i.test(term)) ?? terms.at(-1)

const URI = 'https?://cv\\.iptc\\.org/newscodes/digitalsourcetype/'
const TERM = '[A-Za-z]{1,64}'

/** The rest of a tag: its attributes, whose values may contain `>`. Then the text that follows. */
const TAG = /<([\w.:-]+)((?:\s+[\w.:-]+\s*=\s*(?:"[^"<]*"|'[^'<]*'))*)\s*\/?>([^<]*)/g
const ATTRIBUTE = /([\w.:-]+)\s*=\s*(?:"([^"]*)"|'([^']*)')/g
const NAMESPACE = /xmlns:([\w.-]+)\s*=\s*["']http:\/\/iptc\.org\/std\/Iptc4xmpExt\/2008-02-29\/["']/g
/** Some programs write the term without its URI. */
const TERM_OF_VALUE = new RegExp(`^\\s*(?:${URI})?(${TERM})\\s*$`)

/** Returns the values of IPTC's property: of an attribute, of an element, or of the resource that an element names. */
function termsInXmp(xmp: string): readonly string[] {
  const text = xmp.replace(/<!--.*?(?:-->|$)|<!\[CDATA\[.*?(?:\]\]>|$)/gs, '')
  const names = new Set([...text.matchAll(NAMESPACE)].map(([, prefix]) => `${prefix}:DigitalSourceType`))
  const values = [...text.matchAll(TAG)].flatMap(([, element = '', attributes = '', content = '']) => {
    const isProperty = names.has(element)
    const found = [...attributes.matchAll(ATTRIBUTE)].flatMap(([, name = '', quoted, apostrophed]) =>
      names.has(name) || (isProperty && name.endsWith(':resource')) ? (quoted ?? apostrophed ?? '') : [],
    )
    return isProperty ? [...found, content] : found
  })
  return values.flatMap((value) => TERM_OF_VALUE.exec(value)?.[1] ?? [])
}

/** A value of CBOR, which has the length before the value: the next byte may look like a letter. */
const IN_CBOR = new RegExp(`igitalSourceType(?:\\xd8\\x20)?x(.)(${URI})(${TERM})`, 'gs')
const IN_JSON = new RegExp(`igitalSourceType"\\s*:\\s*"${URI}(${TERM})"`, 'g')

function termsInManifest(text: string): readonly string[] {
  const inCbor = [...text.matchAll(IN_CBOR)].flatMap(([, length = '', uri = '', letters = '']) => {
    const termLength = length.charCodeAt(0) - uri.length
    return termLength > 0 && termLength <= letters.length ? letters.slice(0, termLength) : []
  })
  // Only in boxes of JSON, each part of the text once: a text of CBOR may quote it, and boxes may claim to overlap.
  const inJson: string[] = []
  let end = 0
  for (const { 1: length = '', index } of text.matchAll(/(.{4})json/gs)) {
    const boxEnd = index + Buffer.from(length, 'latin1').readUInt32BE()
    if (index < end || boxEnd > text.length) continue
    end = boxEnd
    for (const [, term = ''] of text.slice(index + 8, boxEnd).matchAll(IN_JSON)) inJson.push(term)
  }
  return [...inCbor, ...inJson]
}
