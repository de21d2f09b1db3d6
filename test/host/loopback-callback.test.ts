import { request } from 'node:http'
import { expect, onTestFinished, test } from 'vitest'
import { listenForCallback } from '../../src/cli/login/web-login.js'

interface Got {
  readonly status: number | undefined
  readonly text: string
  readonly policy: string | string[] | undefined
}

const ask = (port: number, path: string, method = 'GET'): Promise<Got> =>
  new Promise((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port, path, method, agent: false }, async (response) => {
      const chunks: Buffer[] = []
      for await (const chunk of response) chunks.push(chunk as Buffer)
      const policy = response.headers['content-security-policy']
      resolve({ status: response.statusCode, text: Buffer.concat(chunks).toString(), policy })
    })
    sent.on('error', reject).end()
  })

async function listen() {
  const server = await listenForCallback((params) => params.get('state') === 'right')
  onTestFinished(server.close)
  return server
}

test('the first expected request is received, and gets the reply as text', async () => {
  const { port, received } = await listen()
  const got = ask(port, '/?state=right&code=a%26b')
  const { params, reply } = await received
  expect(params.get('code')).toBe('a&b')
  await reply(200, 'Done <b>', 'You can close "this" window.')
  expect(await got).toEqual({
    status: 200,
    text: expect.stringContaining('<h1>Done &#60;b&#62;</h1>\n<p>You can close &#34;this&#34; window.</p>'),
    policy: "default-src 'none'",
  })
  expect((await ask(port, '/?state=right')).status).toBe(404)
})

test.each([
  ['another state', '/?state=wrong', 'GET'],
  ['no state', '/', 'GET'],
  ['another path', '/favicon.ico?state=right', 'GET'],
  ['another method', '/?state=right', 'POST'],
  ['a path that is no URL', '//', 'GET'],
])('%s is answered with 404, and the wait goes on', async (_, path, method) => {
  const { port, received } = await listen()
  expect((await ask(port, path, method)).status).toBe(404)
  const got = ask(port, '/?state=right')
  await (await received).reply(200, 'Done', 'Done.')
  expect((await got).status).toBe(200)
})

test('nobody else can connect once it is closed', async () => {
  const server = await listenForCallback(() => true)
  server.close()
  await expect(ask(server.port, '/')).rejects.toMatchObject({ code: 'ECONNREFUSED' })
})
