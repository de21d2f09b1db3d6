/** Headers of the console's page: the encoding of a file, and the Content-Security-Policy. Pure. */

export const CODINGS = ['br', 'gzip'] as const

export type Coding = (typeof CODINGS)[number]

/**
 * Returns the first of `CODINGS` that exists and that the client accepts (RFC 9110, 12.5.3), or undefined for the
 * uncompressed file.
 */
export function bestCoding(
  acceptEncoding: string | undefined,
  existing: readonly Coding[],
): Coding | undefined {
  const weights = new Map(
    (acceptEncoding ?? '').split(',').map((part) => {
      const [name = '', ...parameters] = part.toLowerCase().split(';')
      const [, weight = '1'] = /^\s*q\s*=\s*([\d.]+)/.exec(parameters[0] ?? '') ?? []
      return [name.trim(), Number(weight)] as const
    }),
  )
  const isAccepted = (coding: Coding) => (weights.get(coding) ?? weights.get('*') ?? 0) > 0
  return CODINGS.find((coding) => existing.includes(coding) && isAccepted(coding))
}

/** Returns the Content-Security-Policy. `urls` are sources of pictures and videos other than the service. */
export function pagePolicy(urls: readonly (string | undefined)[]): string {
  const origins = urls.flatMap((url) => (url !== undefined && URL.canParse(url) ? [new URL(url).origin] : []))
  const media = ["'self'", 'blob:', 'data:', ...new Set(origins)].join(' ')
  const directives = {
    'default-src': "'none'",
    'script-src': "'self'",
    'style-src': "'self'",
    'img-src': media,
    'media-src': media,
    'connect-src': "'self'",
    'font-src': "'self'",
    'base-uri': "'none'",
    'form-action': "'self'",
    'frame-ancestors': "'none'",
  }
  return Object.entries(directives)
    .map(([name, value]) => `${name} ${value}`)
    .join('; ')
}
