/**
 * Finds what a file says of its origin: whether it has Content Credentials (a C2PA manifest), and the digital source type
 * of IPTC in its XMP or its manifest. Verifies nothing: anyone can write or remove such marks.
 *
 * Knows PNG, JPEG, WebP, and MP4 with its relatives (MOV, M4V, M4A, AVIF, HEIC). The files are untrusted: the
 * numbers of reads and of bytes are bounded.
 */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import { constants, inflateSync } from 'node:zlib'
import type { FileMarks } from '../protocol/media.js'

export interface MarksSource {
  /** In bytes. */
  readonly size: number
  /** Returns `length` bytes at `offset`, fewer at the end of the file. May throw. */
  read(offset: number, length: number): Buffer
}

/** A chunk, segment or box takes at least one read. */
export const MAX_READS = 4_096
export const MAX_READ_BYTES = 1_048_576
const MAX_XMP_BYTES = 65_536
/** Manifests contain thumbnails. The rest of `MAX_READ_BYTES` is for the other parts of the file. */
const MAX_MANIFEST_BYTES = 524_288
const PIECE_BYTES = 65_536
/** One is usual. Each may be a bomb, which takes 1 ms. */
const MAX_PNG_XMPS = 8

/** Of a file that could not be read. */
export const NO_MARKS: FileMarks = { content_credentials: null, digital_source_type: null }

/** Returns the marks of the file at `path`. Never throws. */
export function marksOfFile(path: string): FileMarks {
  let handle: number | undefined
  try {
    const file = openSync(path, 'r')
    handle = file
    return findMarks({
      size: fstatSync(file).size,
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
  const found: Findings = { hasManifest: false, manifestBytes: 0, tail: '' }
  let isKnown = false
  try {
    isKnown = lookAt(bounded(source), found)
  } catch {
    // Keep the marks that were found until then.
  }
  return {
    content_credentials: found.hasManifest || (isKnown ? false : null),
    digital_source_type: found.xmpTerm ?? found.manifestTerm ?? null,
  }
}

interface Findings {
  hasManifest: boolean
  /** Bytes of manifests that were read. */
  manifestBytes: number
  /** End of the last piece of a manifest: a URI may continue in the next piece. */
  tail: string
  xmpTerm?: string
  manifestTerm?: string
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
  // Older QuickTime files begin with another box.
  else if (/^.{4}(ftyp|moov|mdat|wide)/s.test(head)) lookAtBoxes(file, found)
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
  let texts = 0
  for (let at = 8; at + 12 <= file.size; ) {
    const head = file.read(at, 8)
    const type = head.toString('latin1', 4)
    const part = { at: at + 8, length: head.readUInt32BE() }
    if (type === 'caBX') readManifest(file, part, found)
    else if (
      (type === 'iTXt' || type === 'zTXt') &&
      textOf(file, part, xmpName.length) === xmpName &&
      texts++ < MAX_PNG_XMPS
    )
      readXmp(pngText(type, textOf(file, after(part, xmpName.length))), found)
    // A checksum follows.
    const chunkBytes = part.length + 12
    at += chunkBytes * (type === 'IDAT' ? pixelChunks(file, at, head) : 1)
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
  const options = { maxOutputLength: 4 * MAX_XMP_BYTES, finishFlush: constants.Z_SYNC_FLUSH }
  try {
    return inflateSync(Buffer.from(content.slice(begin), 'latin1'), options).toString('latin1')
  } catch {
    return ''
  }
}

/**
 * Returns the number of chunks with this head at `at`. Encoders write thousands of them with equal lengths, and the format
 * allows nothing between them, so that larger and larger steps find the last one.
 */
function pixelChunks(file: MarksSource, at: number, head: Buffer): number {
  const chunkBytes = head.readUInt32BE() + 12
  let chunks = 1
  for (let step = 1; step >= 1; ) {
    const isSame = file.read(at + (chunks + step - 1) * chunkBytes, 8).equals(head)
    if (isSame) chunks += step
    step = isSame ? step * 2 : step / 2
  }
  return chunks
}

function lookAtJpeg(file: MarksSource, found: Findings): void {
  const [fill, app1, app11, scan] = [0xff, 0xe1, 0xeb, 0xda]
  let manifest: string | undefined
  for (let at = 2; at + 4 <= file.size; ) {
    const head = file.read(at, 4)
    const marker = head[1] ?? 0
    const part = { at: at + 4, length: head.readUInt16BE(2) - 2 }
    at = marker === fill ? at + 1 : part.at + part.length
    if (marker === fill) continue
    // The metadata ends at the scan.
    if (head[0] !== 0xff || marker === scan || part.length < 0) return
    const name = marker === app1 || marker === app11 ? textOf(file, part, 29) : ''
    if (marker === app1 && name === 'http://ns.adobe.com/xap/1.0/\0') readXmp(textOf(file, part), found)
    if (marker !== app11 || !name.startsWith('JP')) continue
    // A box of several segments: each has the number of the box, and repeats its head of 8 bytes.
    const box = name.slice(2, 4)
    if (box === manifest) readManifest(file, after(part, 16), found)
    else if (name.slice(24, 28) === 'c2pa') {
      manifest = box
      readManifest(file, part, found)
    }
  }
}

function lookAtWebp(file: MarksSource, found: Findings): void {
  for (let at = 12; at + 8 <= file.size; ) {
    const head = file.read(at, 8)
    const type = head.toString('latin1', 0, 4)
    const part = { at: at + 8, length: head.readUInt32LE(4) }
    if (type === 'C2PA') readManifest(file, part, found)
    else if (type === 'XMP ') readXmp(textOf(file, part), found)
    at = part.at + part.length + (part.length % 2)
  }
}

const C2PA_BOX = Buffer.from('d8fec3d61b0e483c92975828877ec481', 'hex').toString('latin1')
const XMP_BOX = Buffer.from('be7acfcb97a942e89c71999491e3afac', 'hex').toString('latin1')

/** QuickTime has its XMP inside other boxes: `containers`, the outermost first. */
function lookAtBoxes(
  file: MarksSource,
  found: Findings,
  { at: begin, length }: Part = { at: 0, length: file.size },
  [container, ...inner]: readonly string[] = ['moov', 'udta'],
): void {
  const end = Math.min(begin + length, file.size)
  for (let at = begin; at + 16 <= end; ) {
    const head = file.read(at, 16)
    const size = head.readUInt32BE()
    // 0: up to the end; 1: a longer number follows.
    const boxBytes = size === 0 ? end - at : size === 1 ? Number(head.readBigUInt64BE(8)) : size
    const part = after({ at, length: boxBytes }, size === 1 ? 16 : 8)
    if (part.length < 0) return
    const type = head.toString('latin1', 4, 8)
    if (type === container) lookAtBoxes(file, found, part, inner)
    else if (type === 'XMP_') readXmp(textOf(file, part), found)
    else if (type === 'uuid') {
      // The version and the purpose follow the UUID.
      const name = textOf(file, part, 29)
      if (name.startsWith(XMP_BOX)) readXmp(textOf(file, part), found)
      else if (name.startsWith(C2PA_BOX) && /^(manifest|original|update)\0/.test(name.slice(20)))
        readManifest(file, part, found)
    }
    at += boxBytes
  }
}

function readXmp(text: string, found: Findings): void {
  for (const term of termsIn(text)) found.xmpTerm = preferred(found.xmpTerm, term)
}

function readManifest(file: MarksSource, part: Part, found: Findings): void {
  found.hasManifest = true
  const length = Math.min(part.length, file.size - part.at, MAX_MANIFEST_BYTES - found.manifestBytes)
  for (let from = 0; from < length; from += PIECE_BYTES) {
    const text = found.tail + textOf(file, after({ at: part.at, length }, from), PIECE_BYTES)
    for (const term of termsIn(text)) found.manifestTerm = preferred(found.manifestTerm, term)
    found.tail = text.slice(-MAX_PROPERTY)
  }
  found.manifestBytes += Math.max(0, length)
}

/** A manifest also describes what a file was made from: a term of synthetic media comes first, then the last one. */
const preferred = (known: string | undefined, term: string): string =>
  known !== undefined && SYNTHETIC.test(known) && !SYNTHETIC.test(term) ? known : term
const SYNTHETIC = /algorithmicMedia$|synthetic$/i

const BASE = '://cv.iptc.org/newscodes/digitalsourcetype/'
const NAME = 'igitalSourceType'
/** Maximum lengths: between the name of the property and its value, of a term, and more than of all together. */
const [MAX_BETWEEN, MAX_TERM, MAX_PROPERTY] = [64, 64, 256]

/** Returns the terms of all properties `DigitalSourceType`, in XMP (an attribute or an element), CBOR or JSON. */
function* termsIn(text: string): Generator<string> {
  for (let at = text.indexOf(BASE); at >= 0; at = text.indexOf(BASE, at + BASE.length)) {
    const [scheme = ''] = /https?$/.exec(text.slice(Math.max(0, at - 5), at)) ?? []
    const begin = at - scheme.length
    const before = text.slice(Math.max(0, begin - NAME.length - MAX_BETWEEN), begin)
    const name = before.lastIndexOf(NAME)
    const between = before.slice(name + NAME.length)
    const rest = text.slice(at + BASE.length, at + BASE.length + MAX_TERM + 1)
    // CBOR has the length before the value. The next byte may look like a letter.
    const cbor = /^(?:\xd8\x20)?x(.)$/s.exec(between)?.[1]?.charCodeAt(0)
    const length = cbor === undefined ? rest.search(/["'<\s]/) : cbor - (at + BASE.length - begin)
    const isValue = cbor !== undefined || /^["':=>[\s]*$/.test(between.replace(/^\s+\w+:resource/, ''))
    const term = rest.slice(0, Math.max(0, length))
    if (scheme !== '' && name >= 0 && isValue && term.length === length && /^[A-Za-z]{1,64}$/.test(term))
      yield term
  }
}
