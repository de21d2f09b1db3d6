/**
 * Compares links to outputs. A service signs a link again for each response, so two links to one output may differ in
 * their signature. Everything else of a link can name the output: `/file?id=1` and `/file?id=2` are two outputs.
 */

/** Parameters that can only be a part of a signature. */
const SIGNATURE = new RegExp(
  `^(${[
    // S3, Google Cloud Storage, and the services with their form.
    'x-(amz|goog|oss|tos|obs)-(algorithm|credential|date|expires|signature|signature-version|signedheaders' +
      '|security-token|content-sha256|additional-headers)',
    'q-(sign-algorithm|ak|sign-time|key-time|header-list|url-param-list|signature)',
    'awsaccesskeyid|googleaccessid|ossaccesskeyid|key-pair-id|signature|sig|expires|hdnts|hdnea',
  ].join('|')})$`,
  'i',
)

/** Parameters that belong to a signature only beside all parameters of `beside`: elsewhere they may name the output. */
const PARTS: readonly { readonly beside: readonly string[]; readonly names: readonly string[] }[] = [
  {
    beside: ['sig', 'sv'],
    names: 'se st sp sv sr spr sip skoid sktid skt ske sks skv'.split(' '),
  },
  { beside: ['ex', 'is', 'hm'], names: ['ex', 'is', 'hm'] },
  { beside: ['signature'], names: ['policy', 'security-token'] },
  { beside: ['expires'], names: ['token'] },
]

/**
 * Returns a text that is equal for links to the same output: origin, path and query, without the parameters of a
 * signature and without a fragment. Returns other text than a URL unchanged.
 */
export function outputOfLink(link: string): string {
  if (!URL.canParse(link)) return link
  const { origin, pathname, searchParams } = new URL(link)
  const given = new Set([...searchParams.keys()].map((name) => name.toLowerCase()))
  const signed = new Set(
    PARTS.flatMap(({ beside, names }) => (beside.every((name) => given.has(name)) ? names : [])),
  )
  const query = [...searchParams]
    .filter(([name]) => !SIGNATURE.test(name) && !signed.has(name.toLowerCase()))
    .map((each) => new URLSearchParams([each]).toString())
    .sort()
  return `${origin}${pathname}?${query.join('&')}`
}
