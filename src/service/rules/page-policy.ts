/** The Content-Security-Policy of the page. Pure. */

/** `urls`: where pictures and videos may come from, beside the service. */
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
