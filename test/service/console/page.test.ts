/** The page's files: from a folder as the build leaves it, over the real service. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { brotliCompressSync, brotliDecompressSync, gunzipSync, gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { readPage } from '../../../src/service/console/page.js'
import { createBrowser, createConsoleService, load } from '../../support/console.js'
import { createTestService, temporaryFolder } from '../../support/service.js'

const INDEX = `<!doctype html><title>Runs</title>${'<p>'.repeat(200)}`
const SCRIPT = `export const text = ${JSON.stringify('x'.repeat(2_000))}`

function createFolder({ compressed = true } = {}): string {
  const folder = temporaryFolder()
  mkdirSync(join(folder, 'assets'))
  const write = (name: string, text: string) => {
    writeFileSync(join(folder, name), text)
    if (!compressed) return
    writeFileSync(join(folder, `${name}.br`), brotliCompressSync(text))
    writeFileSync(join(folder, `${name}.gz`), gzipSync(text))
  }
  write('index.html', INDEX)
  write('assets/console-a1b2.js', SCRIPT)
  write('assets/console-c3d4.css', 'body{}')
  return folder
}

const serve = async (options: Parameters<typeof createFolder>[0] = {}, more: object = {}) =>
  createConsoleService({ console: await readPage(createFolder(options)), ...more })

describe('the page', () => {
  test('answers / with a policy, and makes the browser revalidate each time', async () => {
    const service = await serve()
    const { status, header, bytes } = await load(service, '/')
    expect([status, bytes.toString()]).toEqual([200, INDEX])
    const headers = [
      'content-type',
      'cache-control',
      'content-length',
      'vary',
      'x-content-type-options',
      'referrer-policy',
      'cross-origin-opener-policy',
      'permissions-policy',
    ].map((name) => header(name))
    expect(headers).toEqual([
      'text/html; charset=utf-8',
      'no-cache',
      String(INDEX.length),
      'accept-encoding',
      'nosniff',
      'no-referrer',
      'same-origin',
      expect.stringContaining('camera=()'),
    ])
    const policy = header('content-security-policy') ?? ''
    expect(policy).toContain("img-src 'self' blob: data: http://127.0.0.1:7878;")
    expect(policy).not.toContain('unsafe')
    expect(header('set-cookie')).toBeUndefined()
    const etag = header('etag') ?? ''
    expect(etag).toMatch(/^"[0-9a-f]{64}"$/)
    const known = await load(service, '/', { 'if-none-match': etag })
    expect([known.status, known.bytes.length, known.header('etag')]).toEqual([304, 0, etag])
    expect((await load(service, '/', { 'if-none-match': '"x"' })).status).toBe(200)
    expect((await load(service, '/?x=1')).status).toBe(200)
  })

  test('comes compressed if the browser accepts that, with an ETag for each encoding', async () => {
    const service = await serve()
    const forms = [
      await load(service, '/', { 'accept-encoding': 'gzip, deflate, br' }),
      await load(service, '/', { 'accept-encoding': 'gzip' }),
      await load(service, '/'),
    ]
    const [br, gzip] = forms
    expect(forms.map(({ header }) => header('content-encoding'))).toEqual(['br', 'gzip', undefined])
    expect(brotliDecompressSync(br?.bytes ?? '').toString()).toBe(INDEX)
    expect(gunzipSync(gzip?.bytes ?? '').toString()).toBe(INDEX)
    const etags = forms.map(({ header }) => header('etag') ?? '')
    expect(new Set(etags).size).toBe(3)
    const known = { 'accept-encoding': 'br', 'if-none-match': etags[0] ?? '' }
    expect((await load(service, '/', known)).status).toBe(304)
    expect((await load(service, '/', { ...known, 'accept-encoding': 'gzip' })).status).toBe(200)
    const plain = await load(await serve({ compressed: false }), '/', { 'accept-encoding': 'br' })
    expect([plain.header('content-encoding'), plain.header('vary')]).toEqual([undefined, undefined])
  })

  test('serves its files as immutable', async () => {
    const service = await serve()
    const script = await load(service, '/assets/console-a1b2.js', { 'accept-encoding': 'br' })
    expect([script.status, script.header('content-type'), script.header('cache-control')]).toEqual([
      200,
      'text/javascript; charset=utf-8',
      'public, max-age=31536000, immutable',
    ])
    expect(brotliDecompressSync(script.bytes).toString()).toBe(SCRIPT)
    const style = await load(service, '/assets/console-c3d4.css')
    expect([style.header('content-type'), style.header('x-content-type-options')]).toEqual([
      'text/css; charset=utf-8',
      'nosniff',
    ])
  })

  test('answers HEAD like GET, and refuses other methods', async () => {
    const browser = createBrowser(await serve())
    for (const path of ['/', '/assets/console-a1b2.js']) {
      const [head, get] = [await browser.ask('HEAD', path), await browser.get(path)]
      expect([head.status, head.body, head.header('etag')]).toEqual([200, '', get.header('etag')])
      expect(head.header('content-length')).toBe(get.header('content-length'))
      const refused = await browser.post(path)
      expect(refused.status).toBe(404)
    }
  })

  test('answers unknown paths with the 404 of the API', async () => {
    const browser = createBrowser(await serve())
    for (const path of [
      '/index.html',
      '/runs',
      '/assets',
      '/assets/',
      '/assets/none.js',
      '/assets/console-a1b2.js.br',
      '/assets/..%2findex.html',
      '/assets/%2e%2e%2f%2e%2e%2fservice.db',
      '/assets/constructor',
      '/favicon.ico',
    ]) {
      const { status, body } = await browser.get(path)
      expect([path, status, body.error?.code]).toEqual([path, 404, 'not_found'])
    }
  })

  test('allows images of the bucket that outputs are redirected to', async () => {
    const { service, storage } = await withBucket(async () => 'https://bucket.example:9000/x?signature=1')
    expect((await load(service, '/')).header('content-security-policy')).toContain(
      "img-src 'self' blob: data: http://127.0.0.1:7878 https://bucket.example:9000;",
    )
    await load(service, '/')
    expect(storage.asked).toBe(1)
  })

  test('answers even while no URL can be signed', async () => {
    const { service } = await withBucket(async () => {
      throw new Error('no credentials')
    })
    expect(await load(service, '/')).toMatchObject({ status: 200 })
  })

  async function withBucket(sign: () => Promise<string>) {
    const { createLocalStorage } = await import('../../../src/service/files/local-files.js')
    const { makeDataFolders } = await import('../../../src/service/data-folders.js')
    const { createManualClock } = await import('../../support/clock.js')
    const clock = createManualClock()
    const local = createLocalStorage((await makeDataFolders(temporaryFolder())).files, clock)
    const storage = { asked: 0 }
    const signedUrl = () => {
      storage.asked++
      return sign()
    }
    const service = await serve({}, { clock, storage: { ...local, files: { ...local.files, signedUrl } } })
    return { service, storage }
  }
})

test('a folder without index.html gives no page', async () => {
  expect(await readPage(temporaryFolder())).toBeUndefined()
  expect(await readPage('/nowhere')).toBeUndefined()
})

test('a page needs no file but index.html', async () => {
  const folder = temporaryFolder()
  writeFileSync(join(folder, 'index.html'), 'x')
  expect((await readPage(folder))?.assets.size).toBe(0)
})

test('a service without a console and a worker serve no page', async () => {
  for (const options of [{}, { role: 'worker', console: await readPage(createFolder()) }] as const) {
    const service = await createTestService(options)
    expect((await load(service, '/')).status).toBe(404)
  }
})
