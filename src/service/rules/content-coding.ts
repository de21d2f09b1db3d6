/** The compressed form of a file that a client takes. Pure. */

export const CODINGS = ['br', 'gzip'] as const

export type Coding = (typeof CODINGS)[number]

/** The first of `CODINGS` that there is and that the client takes (RFC 9110, 12.5.3); undefined: the plain file. */
export function bestCoding(acceptEncoding: string | undefined, there: readonly Coding[]): Coding | undefined {
  const weights = new Map(
    (acceptEncoding ?? '').split(',').map((part) => {
      const [name = '', ...parameters] = part.toLowerCase().split(';')
      const [, weight = '1'] = /^\s*q\s*=\s*([\d.]+)/.exec(parameters[0] ?? '') ?? []
      return [name.trim(), Number(weight)] as const
    }),
  )
  const takes = (coding: Coding) => (weights.get(coding) ?? weights.get('*') ?? 0) > 0
  return CODINGS.find((coding) => there.includes(coding) && takes(coding))
}
