/** Builds files with marks of synthetic media: Content Credentials and XMP. Signatures and checksums are not real. */
import { ONE_PIXEL_PNG } from './engines.js'

export interface Marked {
  /** Bytes of a manifest (JUMBF). */
  readonly manifest?: Buffer | undefined
  readonly xmp?: string | undefined
}

export const uriOf = (term: string): string => `http://cv.iptc.org/newscodes/digitalsourcetype/${term}`

/** XMP whose description has these properties, as attributes and as elements. */
export const xmpOf = (attributes: string, elements = ''): string =>
  `<?xpacket begin="\ufeff" id="W5M0MpCehiHzreSzNTczkc9d"?><x:xmpmeta xmlns:x="adobe:ns:meta/">` +
  `<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description rdf:about="" ` +
  `xmlns:Iptc4xmpExt="http://iptc.org/std/Iptc4xmpExt/2008-02-29/" ${attributes}>${elements}` +
  `</rdf:Description></rdf:RDF></x:xmpmeta><?xpacket end="w"?>`

export const xmpWith = (term: string): string => xmpOf(`Iptc4xmpExt:DigitalSourceType="${uriOf(term)}"`)

export const u32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

const u32le = (value: number): Buffer => u32(value).reverse()

/** A box of MP4 and of JUMBF. */
export const box = (type: string, ...content: readonly (Buffer | string)[]): Buffer => {
  const bytes = Buffer.concat(content.map((each) => Buffer.from(each as string)))
  return Buffer.concat([u32(bytes.length + 8), Buffer.from(type), bytes])
}

/** A text of CBOR, shorter than 256 bytes. */
export const cborText = (text: string): Buffer =>
  Buffer.concat([
    text.length < 24 ? Buffer.from([0x60 + text.length]) : Buffer.from([0x78, text.length]),
    Buffer.from(text),
  ])

/** An action of a manifest, as CBOR. The next key begins with a byte that looks like a letter. */
export const actionOf = (term: string): Buffer =>
  Buffer.concat(
    ['action', 'c2pa.created', 'digitalSourceType', uriOf(term), 'softwareAgent', 'a fox'].map(cborText),
  )

/** A manifest store with these assertions, which are JSON or CBOR. */
export const manifestOf = (...assertions: readonly (Buffer | string)[]): Buffer => {
  const uuid = Buffer.from('63327061' + '00110010800000AA00389B71', 'hex')
  return box(
    'jumb',
    box('jumd', uuid, '\x03c2pa\0'),
    ...assertions.map((each) => box(`${each}`.startsWith('{') ? 'json' : 'cbor', each)),
  )
}

export const pngChunk = (type: string, content: Buffer | string): Buffer => {
  const bytes = Buffer.from(content as string)
  return Buffer.concat([u32(bytes.length), Buffer.from(type), bytes, u32(0)])
}

export function markedPng({ manifest, xmp }: Marked, base: Buffer = ONE_PIXEL_PNG): Buffer {
  const [header, rest] = [base.subarray(0, 33), base.subarray(33)]
  const parts = [
    ...(manifest ? [pngChunk('caBX', manifest)] : []),
    ...(xmp ? [pngChunk('iTXt', `XML:com.adobe.xmp\0\0\0\0\0${xmp}`)] : []),
  ]
  // XMP may also follow the pixels.
  return Buffer.concat([header, ...parts, rest])
}

export const jpegSegment = (marker: number, content: Buffer | string): Buffer => {
  const bytes = Buffer.from(content as string)
  return Buffer.concat([Buffer.from([0xff, marker]), u32(bytes.length + 2).subarray(2), bytes])
}

/** Length of the first segment's part of a manifest, so that each file has several segments. */
const SEGMENT_BYTES = 96

export function markedJpeg({ manifest, xmp }: Marked, base: Buffer): Buffer {
  const segments: Buffer[] = []
  for (let at = 0; manifest !== undefined && at < manifest.length; at += SEGMENT_BYTES)
    segments.push(
      jpegSegment(
        0xeb,
        Buffer.concat([
          Buffer.from('JP\x02\x11'),
          u32(segments.length + 1),
          // Repeated in each segment.
          at === 0 ? Buffer.alloc(0) : manifest.subarray(0, 8),
          manifest.subarray(at, at + SEGMENT_BYTES),
        ]),
      ),
    )
  if (xmp !== undefined) segments.push(jpegSegment(0xe1, `http://ns.adobe.com/xap/1.0/\0${xmp}`))
  return Buffer.concat([base.subarray(0, 2), ...segments, base.subarray(2)])
}

const riffChunk = (type: string, content: Buffer | string): Buffer => {
  const bytes = Buffer.from(content as string)
  return Buffer.concat([Buffer.from(type), u32le(bytes.length), bytes, Buffer.alloc(bytes.length % 2)])
}

export function markedWebp({ manifest, xmp }: Marked, base: Buffer): Buffer {
  const content = Buffer.concat([
    base.subarray(8),
    ...(manifest ? [riffChunk('C2PA', manifest)] : []),
    ...(xmp ? [riffChunk('XMP ', xmp)] : []),
  ])
  return Buffer.concat([Buffer.from('RIFF'), u32le(content.length), content])
}

export const C2PA_UUID = Buffer.from('d8fec3d61b0e483c92975828877ec481', 'hex')
export const XMP_UUID = Buffer.from('be7acfcb97a942e89c71999491e3afac', 'hex')

/** The manifest follows the first box, XMP the last one. */
export function markedMp4({ manifest, xmp }: Marked, base: Buffer, purpose = 'manifest'): Buffer {
  const first = base.readUInt32BE(0)
  return Buffer.concat([
    base.subarray(0, first),
    ...(manifest ? [box('uuid', C2PA_UUID, u32(0), `${purpose}\0`, Buffer.alloc(8), manifest)] : []),
    base.subarray(first),
    ...(xmp ? [box('uuid', XMP_UUID, xmp)] : []),
  ])
}
