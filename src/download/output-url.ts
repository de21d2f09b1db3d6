/** The addresses of outputs: they come from a server, and often hold a secret. */
import { printable, shortened } from '../protocol/text.js'

/** An http(s) URL, or undefined. A name and password in it are dropped: nothing is sent but the request itself. */
export function parseAddress(text: string, base?: URL): URL | undefined {
  if (!URL.canParse(text, base?.href)) return undefined
  const url = new URL(text, base)
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return undefined
  url.username = ''
  url.password = ''
  return url
}

/** For messages: whoever holds the query of a signed URL can fetch the file, and messages end in logs. */
export function printableAddress(text: string): string {
  const url = parseAddress(text)
  return shortened(url ? url.origin + url.pathname : printable(text).replace(/[?#].*$/, ''), 200)
}
