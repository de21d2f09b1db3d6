/**
 * Whether a download may go on where one stopped: pure, tested by table. A changed file must never be glued to an old
 * part, so the host itself has to say that it is still the same (RFC 9110, 13.1.5 and 14.4).
 */

/** What is known of the file that a part is a beginning of; nothing of its address, which may hold a secret. */
export interface About {
  readonly etag?: string | undefined
  readonly lastModified?: string | undefined
  readonly totalBytes?: number | undefined
  readonly contentType?: string | undefined
}

export type Plan =
  | { readonly kind: 'anew' }
  /** Everything is there already. */
  | { readonly kind: 'whole' }
  | { readonly kind: 'from'; readonly bytes: number; readonly ifRange: string; readonly about: About }

export type Header = (name: string) => string | undefined

/** A strong ETag, else the date of the last change. A weak ETag names files that mean the same, not the same bytes. */
export const validatorOf = ({ etag, lastModified }: About): string | undefined =>
  etag !== undefined && /^"[^"]*"$/.test(etag) ? etag : lastModified

/** What to ask for, with so many bytes of it at hand. */
export function planOf(about: About | undefined, bytes: number): Plan {
  const ifRange = about === undefined ? undefined : validatorOf(about)
  if (about === undefined || ifRange === undefined || bytes === 0) return { kind: 'anew' }
  const { totalBytes } = about
  if (totalBytes === bytes) return { kind: 'whole' }
  if (totalBytes !== undefined && bytes > totalBytes) return { kind: 'anew' }
  return { kind: 'from', bytes, ifRange, about }
}

/** What a whole answer tells of its file; undefined where its bytes are not those of the file (an encoding). */
export function aboutOf(header: Header): About | undefined {
  if ((header('content-encoding') ?? 'identity').trim().toLowerCase() !== 'identity') return undefined
  const length = header('content-length')?.trim() ?? ''
  return {
    etag: header('etag')?.trim(),
    lastModified: header('last-modified')?.trim(),
    totalBytes: /^\d{1,15}$/.test(length) ? Number(length) : undefined,
    contentType: header('content-type'),
  }
}

export type Continuation =
  /** The rest follows. */
  | 'append'
  /** The file follows from its beginning. */
  | 'anew'
  /** There is no more. */
  | 'whole'
  /** Neither: the part is of no use, and the file is to be asked for without it. */
  | 'mismatch'

export interface PartialAnswer {
  readonly status: number
  readonly header: Header
}

/** What the answer to a request for the rest is. */
export function continuationOf(
  { bytes, about }: Extract<Plan, { kind: 'from' }>,
  { status, header }: PartialAnswer,
): Continuation {
  if (status === 200) return 'anew'
  const range = header('content-range')?.trim() ?? ''
  if (status === 416) return range === `bytes */${bytes}` ? 'whole' : 'mismatch'
  const [, from, to, total] = /^bytes\s+(\d{1,15})-(\d{1,15})\/(\d{1,15}|\*)$/i.exec(range) ?? []
  const [etag, encoding] = [header('etag')?.trim(), header('content-encoding')?.trim() || 'identity']
  const fits =
    Number(from) === bytes &&
    Number(to) >= bytes &&
    (total === '*' || Number(to) === Number(total) - 1) &&
    (total === '*' || about.totalBytes === undefined || Number(total) === about.totalBytes) &&
    (etag === undefined || about.etag === undefined || etag === about.etag) &&
    encoding.toLowerCase() === 'identity'
  return fits ? 'append' : 'mismatch'
}
