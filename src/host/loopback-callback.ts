/** One request of the user's browser to this process: how a page hands a result to a program on the same machine. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Callback {
  readonly params: URLSearchParams
  /** Sends a page with these words, and resolves when the browser has it or has gone. */
  reply(status: number, title: string, text: string): Promise<void>
}

export interface CallbackServer {
  /** On 127.0.0.1. */
  readonly port: number
  /** The first request that `isExpected` accepts; others get 404. */
  readonly received: Promise<Callback>
  /** Ends open connections too. */
  close(): void
}

const escapeHtml = (text: string): string =>
  text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)

const pageOf = (title: string, text: string): string => `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escapeHtml(title)}</title>
<h1>${escapeHtml(title)}</h1>
<p>${escapeHtml(text)}</p>
</html>
`

const HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': "default-src 'none'",
  'cache-control': 'no-store',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  connection: 'close',
}

/** Listens on a free port of 127.0.0.1. Rejects when it cannot. */
export async function listenForCallback(
  isExpected: (params: URLSearchParams) => boolean,
): Promise<CallbackServer> {
  let resolve: (callback: Callback) => void
  const received = new Promise<Callback>((resolved) => {
    resolve = resolved
  })
  let isReceived = false
  const server = createServer((request, response) => {
    const send = (status: number, title: string, text: string): Promise<void> =>
      new Promise((sent) => {
        response.on('close', sent)
        response.writeHead(status, HEADERS).end(pageOf(title, text))
      })
    const url = URL.canParse(request.url ?? '', 'http://127.0.0.1')
      ? new URL(request.url ?? '', 'http://127.0.0.1')
      : undefined
    const isWanted = request.method === 'GET' && url?.pathname === '/' && isExpected(url.searchParams)
    if (!isWanted || isReceived)
      return void send(404, 'Not found', 'This address is used once, by a command that waits.')
    isReceived = true
    resolve({ params: url.searchParams, reply: send })
  })
  await new Promise<void>((listening, failed) => {
    server.once('error', failed)
    server.listen({ host: '127.0.0.1', port: 0 }, listening)
  })
  return {
    port: (server.address() as AddressInfo).port,
    received,
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
}
