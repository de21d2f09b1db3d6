/** The types of images that can be sent with a request. */

interface Signature {
  readonly type: string
  matches(head: string): boolean
}

/** `head`: the first bytes as latin1. */
const SIGNATURES: readonly Signature[] = [
  { type: 'image/png', matches: (head) => head.startsWith('\x89PNG\r\n\x1a\n') },
  { type: 'image/jpeg', matches: (head) => head.startsWith('\xff\xd8\xff') },
  { type: 'image/webp', matches: (head) => head.startsWith('RIFF') && head.slice(8, 12) === 'WEBP' },
  { type: 'image/gif', matches: (head) => /^GIF8[79]a/.test(head) },
  {
    type: 'image/avif',
    matches: (head) => head.slice(4, 8) === 'ftyp' && /^(.{4})*?(avif|avis)/s.test(head.slice(8, 64)),
  },
]

/** The content type of an image by its first bytes; undefined when it is not one that is sent. */
export function imageTypeOf(bytes: Uint8Array): string | undefined {
  const head = String.fromCharCode(...bytes.subarray(0, 64))
  return SIGNATURES.find(({ matches }) => matches(head))?.type
}
