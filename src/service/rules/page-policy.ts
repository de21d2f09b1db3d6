/** The Content-Security-Policy of the pages. Pure. */

/** Returns the Content-Security-Policy. `urls` are sources of pictures and videos other than the service. */
export function pagePolicy(urls: readonly (string | undefined)[]): string {
  const origins = urls.flatMap((url) => (url !== undefined && URL.canParse(url) ? [new URL(url).origin] : []))
  const media = ["'self'", 'data:', ...new Set(origins)].join(' ')
  const directives = {
    'default-src': "'none'",
    'script-src': "'self'",
    'style-src': "'self'",
    'img-src': media,
    'media-src': media,
    'connect-src': "'self'",
    'base-uri': "'none'",
    'form-action': "'self'",
    'frame-ancestors': "'none'",
  }
  return Object.entries(directives)
    .map(([name, value]) => `${name} ${value}`)
    .join('; ')
}
