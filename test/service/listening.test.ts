import { request } from 'undici'
import { beforeAll, expect, test } from 'vitest'
import { LOCAL_MODELS } from '../../src/service/rules/names.js'
import {
  createInstantEngine,
  createTestService,
  ended,
  finished,
  type TestService,
} from '../support/index.js'
import { createHead, dial } from '../support/line.js'

const RUNS = '/api/v1/runs'
const A_FOX = JSON.stringify({ model: LOCAL_MODELS.image, input: { prompt: 'a fox' } })

/** For requests that leave it as it was. */
let shared: TestService
beforeAll(async () => {
  shared = await createTestService({ port: 0 })
})

/** Like `Fetch`, for methods and headers that it does not send. */
async function send(port: number, path: string, options: Parameters<typeof request>[1] = {}) {
  const { statusCode, headers, body } = await request(`http://127.0.0.1:${port}${path}`, {
    ...options,
    reset: true,
  })
  return { status: statusCode, headers, text: await body.text() }
}

test('a service on a port works as in process, and its output URLs begin with its address', async () => {
  const service = await createTestService({ port: 0 })
  const headers = { authorization: `Bearer ${service.apiKey}` }
  const created = await send(service.port, RUNS, { method: 'POST', headers, body: A_FOX })
  expect(created.status).toBe(201)
  const run = await ended(service, JSON.parse(created.text).id)
  expect(run.output.urls[0]).toMatch(new RegExp(`^http://127\\.0\\.0\\.1:${service.port}/outputs/`))
  const { pathname: path } = new URL(run.output.urls[0])
  const [get, head] = [await send(service.port, path), await send(service.port, path, { method: 'HEAD' })]
  expect(head.status).toBe(200)
  expect(head.text).toBe('')
  for (const name of ['content-length', 'etag', 'content-type', 'accept-ranges'])
    expect(head.headers[name]).toBe(get.headers[name])
})

test('on all addresses, URLs begin with the host that the client asked for', async () => {
  const service = await createTestService({ publicUrl: undefined })
  const { url } = await service.service.listen({ host: '0.0.0.0', port: 0 })
  const { port } = new URL(url)
  const ask = (path: string, host: string, create = {}) =>
    send(Number(port), path, { headers: { authorization: `Bearer ${service.apiKey}`, host }, ...create })
  const created = await ask(RUNS, `studio.lan:${port}`, { method: 'POST', body: A_FOX })
  expect(created.headers.location).toMatch(new RegExp(`^http://studio\\.lan:${port}/api/v1/runs/`))
  const { id } = JSON.parse(created.text)
  await ended({ ...service, baseUrl: url }, id)
  for (const [host, base] of [
    [`studio.lan:${port}`, `http://studio.lan:${port}`],
    [`10.0.0.7:${port}`, `http://10.0.0.7:${port}`],
    ['"><script>', url],
  ] as const) {
    const { output } = JSON.parse((await ask(`${RUNS}/${id}`, host)).text)
    expect(output.urls).toEqual([expect.stringContaining(`${base}/outputs/`)])
  }
  expect((await ask('/api/v1/openapi.json', 'studio.lan')).text).toContain('"http://studio.lan"')
})

test('refuses a request without a key before its body arrives, and closes the connection', async () => {
  const line = dial(shared.baseUrl)
  line.send(`POST ${RUNS} HTTP/1.1\r\nHost: x\r\nContent-Length: 300000\r\n\r\n{"model"`)
  expect(await line.responses(1)).toEqual(['HTTP/1.1 401'])
  expect(line.heard).toMatch(/connection: close/i)
  line.send(`${'x'.repeat(300_000 - 8)}GET ${RUNS}/x HTTP/1.1\r\nHost: x\r\n\r\n`)
  await line.hungUp()
  expect(line.heard.match(/HTTP\/1\.1/g)).toHaveLength(1)
})

test('refuses a body that is too large at once, declared or not', async () => {
  const service = await createTestService({ port: 0, bodyLimitBytes: 100_000 })
  const head = createHead(service)
  const declared = dial(service.baseUrl)
  declared.send(`${head}Content-Length: 100001\r\n\r\n`)
  expect(await declared.responses(1)).toEqual(['HTTP/1.1 413'])
  expect(declared.heard).toContain('payload_too_large')
  await declared.hungUp()

  const chunked = dial(service.baseUrl)
  chunked.send(`${head}Transfer-Encoding: chunked\r\n\r\n186a1\r\n${'x'.repeat(100_001)}\r\n`)
  expect(await chunked.responses(1)).toEqual(['HTTP/1.1 413'])
  await chunked.hungUp()

  const fitting = dial(service.baseUrl)
  fitting.send(`${head}Content-Length: 100000\r\n\r\n${A_FOX.padEnd(100_000)}`)
  expect(await fitting.responses(1)).toEqual(['HTTP/1.1 201'])
})

test('limits bodies in flight, and always accepts small ones', async () => {
  const service = await createTestService({ port: 0, bodyLimitBytes: 1_000_000 })
  const upload = (bytes: number) => {
    const line = dial(service.baseUrl)
    line.send(`${createHead(service)}Content-Length: 1000000\r\n\r\n`)
    line.send('x'.repeat(bytes))
    return line
  }
  const uploads = Array.from({ length: 5 }, () => upload(999_999))
  // Four of them fit, whichever come first.
  const refused = await Promise.race(uploads.map((line) => line.responses(1).then(() => line)))
  expect(refused.heard).toMatch(/^HTTP\/1\.1 503/)
  expect(refused.heard).toMatch(/retry-after: 5/i)
  expect(refused.heard).toContain('overloaded')
  const headers = { authorization: `Bearer ${service.apiKey}` }
  const small = await send(service.port, RUNS, { method: 'POST', headers, body: A_FOX })
  expect(small.status).toBe(201)
  for (const line of uploads) line.socket.destroy()
  await expect
    .poll(async () => {
      const again = upload(999_999)
      again.send('x')
      return (await again.responses(1))[0]
    })
    .toBe('HTTP/1.1 400')
})

test('reads a body as JSON, whatever its content type', async () => {
  const { apiKey, port } = await createTestService({ port: 0 })
  for (const type of [
    undefined,
    'application/json',
    'text/plain',
    ';;;',
    'application/x-www-form-urlencoded',
  ]) {
    const headers = { authorization: `Bearer ${apiKey}`, ...(type !== undefined && { 'content-type': type }) }
    expect((await send(port, RUNS, { method: 'POST', headers, body: A_FOX })).status, type).toBe(201)
    const empty = await send(port, RUNS, { method: 'POST', headers })
    expect(JSON.parse(empty.text).error.code, type).toBe('invalid_json')
  }
})

test('a port in use is a usage error', async () => {
  const { port } = shared
  const other = await createTestService()
  await expect(other.service.listen({ host: '127.0.0.1', port })).rejects.toMatchObject({
    code: 'usage',
    message: `Port ${port} on 127.0.0.1 is in use.`,
  })
})

test('closing finishes responses for up to 5 s, and then disconnects clients', async () => {
  const engine = createInstantEngine({ bytes: Buffer.alloc(30_000_000) })
  const service = await createTestService({ port: 0, engine })
  const run = await finished(service, A_FOX)

  const idle = dial(service.baseUrl)
  idle.send(`GET ${RUNS}/x HTTP/1.1\r\nHost: x\r\n\r\n`)
  await idle.responses(1)
  const uploading = dial(service.baseUrl)
  uploading.send(`${createHead(service)}Content-Length: 900\r\n\r\n{`)
  const downloading = dial(service.baseUrl)
  downloading.send(`GET ${new URL(run.output.urls[0]).pathname} HTTP/1.1\r\nHost: x\r\n\r\n`)
  await downloading.responses(1)
  downloading.socket.pause()

  const before = service.clock.now()
  const closing = service.service.close()
  await idle.hungUp()
  expect(service.clock.now()).toBe(before)
  await service.clock.runUntil(closing)
  expect(service.clock.now() - before).toBeLessThanOrEqual(5_000)
  await uploading.hungUp()
  downloading.socket.resume()
  await downloading.hungUp()
  expect(downloading.heard.length).toBeLessThan(30_000_000)
  expect(service.complaints).toEqual([])
})
