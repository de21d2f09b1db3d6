/** The console below a path of a proxy, which removes the path. */
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { describePages } from '../support/browser.js'
import { addUser } from '../support/console.js'
import { openConsole, serveConsole } from '../support/console-page.js'

async function startProxy(target: string): Promise<string> {
  const server = createServer((incoming, outgoing) => {
    const { method, url = '', headers } = incoming
    if (!url.startsWith('/media/rushes/')) return void outgoing.writeHead(404).end()
    const forwarded = request(new URL(url.slice('/media/rushes'.length), target), { method, headers })
    forwarded.on('response', (response) => {
      outgoing.writeHead(response.statusCode ?? 502, response.headers)
      response.pipe(outgoing)
    })
    incoming.pipe(forwarded)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

describePages('the console below a path', (pages) => {
  it('signs in, reads and changes through a proxy', async () => {
    const service = await serveConsole()
    const origin = await startProxy(service.url)
    const token = await addUser(service, 'ada@example.com')
    const { page, requests } = await openConsole(pages, { url: origin }, `media/rushes/#/link/${token}`)
    await page.getByRole('button', { name: 'Sign in with this link' }).click()
    await page.getByRole('button', { name: 'Skip' }).click()
    await page.getByRole('link', { name: 'API keys' }).click()
    await page.getByRole('button', { name: 'Disable first' }).click()
    await page.getByText('"first" is disabled.').waitFor()
    expect(requests.length).toBeGreaterThan(5)
    expect(requests.filter((each) => !each.startsWith(`${origin}/media/rushes/`))).toEqual([])
  })
})
