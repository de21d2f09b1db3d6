/** The URLs of outputs: they come from a server and often contain a secret. */
import { printable, shortened } from '../protocol/text.js'

/** An http(s) URL without user name and password, or undefined. */
export function parseOutputUrl(text: string, base?: URL): URL | undefined {
  if (!URL.canParse(text, base?.href)) return undefined
  const url = new URL(text, base)
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return undefined
  url.username = ''
  url.password = ''
  return url
}

/** For messages, which end in logs: without the query, since that of a signed URL gives access to the file. */
export function printableUrl(text: string): string {
  const url = parseOutputUrl(text)
  return shortened(url ? url.origin + url.pathname : printable(text).replace(/[?#].*$/, ''), 200)
}
