/** `rushes serve` as its own process, asked by the program and by hand. */
import { once } from 'node:events'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { bash, createPlace, rushes, serve, start } from '../support/binary.js'
import { usesPostgres } from '../support/test-database.js'

describe.concurrent('serve', () => {
  it('says one line when it listens, and its exports work', async () => {
    const place = await serve(createPlace())
    const lines = place.process.said.stdout.trim().split('\n')
    expect(lines).toHaveLength(1)
    expect(JSON.parse(lines[0] ?? '')).toEqual({
      url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
      data: `${place.home}/.local/state/rushes/service`,
      api_key: expect.stringMatching(/\S{20,}/),
      models: { image: 'rushes/preview-image', video: 'rushes/preview-video' },
      role: 'all',
      console: expect.stringMatching(new RegExp(`^${place.url}/#/link/[\\w-]{43}$`)),
      ...(usesPostgres && { database: expect.stringMatching(/^postgres:\/\/127\.0\.0\.1:\d+\/\w+$/) }),
    })
    const { code, stdout } = await rushes(place, ['run', 'image', 'a fox'])
    expect(code).toBe(0)
    expect(stdout).toMatch(new RegExp(`^${place.url}/outputs/\\S+\\n$`))
    const answer = await fetch(stdout.trim())
    expect(answer.headers.get('content-type')).toBe('image/png')
    expect(Buffer.from(await answer.arrayBuffer()).toString('latin1', 1, 4)).toBe('PNG')
  })

  it('prints a link to the console on the first start, which signs in once', async () => {
    const home = createPlace()
    const first = start(home, ['serve', '--port', '0'], { stdin: 'ignore' })
    const [, origin = '', token] = await first.says('stderr', /^Console: (http:\S+)\/#\/link\/(\S+)$/m)
    await first.says('stderr', /^Data in \S+; it is kept when the service stops\.$/m)
    const page = await fetch(`${origin}/`)
    const [asset] = /assets\/[\w.-]+\.js/.exec(await page.text()) ?? []
    expect((await fetch(`${origin}/${asset}`)).headers.get('cache-control')).toContain('immutable')
    const use = async (path: string, body: object, cookie = '') => {
      const answer = await fetch(`${origin}/api/auth/${path}`, {
        method: 'POST',
        headers: { origin, cookie },
        body: JSON.stringify(body),
      })
      return { status: answer.status, cookie: answer.headers.get('set-cookie') ?? '' }
    }
    const { status, cookie } = await use('link', { token })
    expect([status, cookie]).toEqual([200, expect.stringMatching(/; HttpOnly; SameSite=Strict$/)])
    expect((await use('link', { token })).status).toBe(401)
    const session = cookie.replace(/;.*/, '')
    expect((await use('password', { password: 'correct horse battery' }, session)).status).toBe(200)
    const credentials = { email: 'owner@localhost', password: 'correct horse battery' }
    expect((await use('sign-in', credentials)).status).toBe(200)
    first.kill('SIGTERM')
    await first.ended

    const later = start(home, ['serve', '--port', '0', '--public-url', 'https://x.example/runs/'], {
      stdin: 'ignore',
    })
    await later.says(
      'stderr',
      /^Console: https:\/\/x\.example\/runs\/\nTo get a sign-in link: `rushes admin user link <email>(?: --database <url>)? --public-url https:\/\/x\.example\/runs`\.$/m,
    )
    later.kill('SIGTERM')
    const off = start(home, ['serve', '--port', '0', '--no-console'], { stdin: 'ignore' })
    const [, url = ''] = await off.says('stderr', /^Listening on (http:\S+)\. /m)
    expect((await fetch(`${url}/`)).status).toBe(404)
    expect(off.said.stderr).not.toContain('Console')
  })

  it('is the published interface: create, look, refuse', async () => {
    const { url, apiKey } = await serve(createPlace())
    const ask = async (path: string, options: { key?: string; body?: object } = {}) => {
      const { key = apiKey, body } = options
      const answer = await fetch(`${url}/api/v1/runs${path}`, {
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        ...(body !== undefined && { method: 'POST', body: JSON.stringify(body) }),
      })
      return { status: answer.status, body: await answer.json() }
    }
    const created = await ask('', { body: { model: 'rushes/preview-image', input: { prompt: 'a fox' } } })
    expect(created).toMatchObject({ status: 201, body: { id: expect.any(String) } })
    expect(await ask(`/${created.body.id}`)).toMatchObject({ status: 200, body: { id: created.body.id } })
    expect((await ask('/run_none')).status).toBe(404)
    expect((await ask('/run_none', { key: 'wrong' })).status).toBe(401)
  })

  it.skipIf(usesPostgres)('shows the first key when it listens, and not before', async () => {
    const place = createPlace()
    const other = createServer().listen(0, '127.0.0.1')
    onTestFinished(() => void other.close())
    await once(other, 'listening')
    const { port } = other.address() as AddressInfo
    for (const flag of ['--port', '--metrics-port']) {
      const refused = await rushes(place, ['serve', '--port', '0', flag, String(port)])
      expect(refused).toMatchObject({ code: 2, stdout: '' })
      expect(refused.stderr).toContain(`Port ${port} on 127.0.0.1 is in use.`)
    }
    const { apiKey } = await serve(place)
    expect(apiKey).toMatch(/^rk_/)
  })

  // With a database: `serve-database.test.ts`.
  it.skipIf(usesPostgres)('prints the four lines that make a run work in another terminal', async () => {
    const place = createPlace()
    const person = start(place, ['serve', '--port', '0', '--data', 'my data'], { stdin: 'ignore' })
    await person.says('stderr', /shown only once/)
    const lines = person.said.stdout
    expect(lines).toMatch(
      /^export RUSHES_BASE_URL=http:\S+\nexport RUSHES_API_KEY=\S+\nexport RUSHES_IMAGE_MODEL=rushes\/preview-image\nexport RUSHES_VIDEO_MODEL=rushes\/preview-video\n$/,
    )
    const other = createPlace()
    const pasted = await bash(
      other,
      `${lines}rushes run image "a fox" -q -o fox.png && rushes doctor | grep model`,
    )
    expect(pasted).toMatchObject({ code: 0, stderr: '' })
    expect(pasted.stdout).toMatch(/^fox\.png\nok +video model .*\nok +image model .*\n$/)
    person.kill('SIGTERM')
    expect(await person.ended).toMatchObject({ code: 0, stdout: lines })

    const again = start(place, ['serve', '--port', '0', '--data', 'my data'], { stdin: 'ignore' })
    await again.says('stderr', /rushes admin key create --account default --data 'my data'`\.\n/)
    const three = again.said.stdout
    expect(three.match(/^export \w+/gm)).toEqual([
      'export RUSHES_BASE_URL',
      'export RUSHES_IMAGE_MODEL',
      'export RUSHES_VIDEO_MODEL',
    ])
    const made = await bash(
      place,
      `${three}export RUSHES_API_KEY=$(rushes admin key create --account default --data 'my data' -q)
      rushes run image "a fox" -q`,
    )
    expect(made).toMatchObject({ code: 0, stderr: '', stdout: expect.stringMatching(/^http\S+\n$/) })
    again.kill('SIGTERM')
    await again.ended
  })

  it('answers a large create whose body has just come when it is asked to stop', async () => {
    const place = await serve(createPlace())
    const image = Buffer.alloc(1_500_000, 7).toString('base64')
    const input = { prompt: 'x', image_urls: [`data:image/png;base64,${image}`] }
    const body = JSON.stringify({ model: 'rushes/preview-image', input })
    const create = request(`${place.url}/api/v1/runs`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${place.apiKey}`,
        'content-length': Buffer.byteLength(body),
        expect: '100-continue',
      },
    })
    create.flushHeaders()
    await once(create, 'continue')
    create.end(body, () => place.process.kill('SIGTERM'))
    const [answer] = await once(create, 'response')
    expect(answer.statusCode).toBe(201)
    answer.resume()
    expect(await place.process.ended).toMatchObject({ code: 0, stderr: '' })
  })

  it('is killed, starts again without a key, and goes on with what it had accepted', async () => {
    const home = createPlace()
    const first = await serve(home)
    const { stdout } = await rushes(first, ['run', 'image', '-n', '4', '--no-wait', 'a fox'])
    const ids = stdout.trim().split('\n')
    expect(ids).toHaveLength(4)
    first.process.kill('SIGKILL')
    expect((await first.process.ended).signal).toBe('SIGKILL')
    const second = await serve(home)
    expect(JSON.parse(second.process.said.stdout)).not.toHaveProperty('api_key')
    const waited = await rushes(second.with({ RUSHES_API_KEY: first.apiKey }), [
      'wait',
      '--base-url',
      second.url,
      ...ids,
    ])
    expect(waited.code).toBe(0)
    const urls = waited.stdout.trim().split('\n')
    expect(new Set(urls).size).toBe(4)
    for (const url of urls) expect(url).toMatch(new RegExp(`^${second.url}/outputs/`))
  })

  it('has metrics on a port of their own, until it ends', async () => {
    const place = await serve(createPlace(), ['--metrics-port', '0'])
    const { metrics_url: url } = JSON.parse(place.process.said.stdout)
    expect((await fetch(`${place.url}/healthz`)).status).toBe(200)
    const text = await (await fetch(url)).text()
    expect(text).toContain('rushes_http_requests_total{method="GET",route="/healthz",status="200"} 1\n')
    expect(text).toContain('rushes_queue_length{kind="image"} 0\n')
    expect((await fetch(`${place.url}/metrics`)).status).toBe(404)
    place.process.kill('SIGTERM')
    expect(await place.process.ended).toMatchObject({ code: 0 })
    await expect(fetch(url)).rejects.toThrow()
  })

  it('says that a port is taken, and keeps nothing open', async () => {
    const place = await serve(createPlace())
    const port = new URL(place.url).port
    const { code, stdout, stderr } = await rushes(createPlace(), ['serve', '--port', port])
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toContain(port)
    expect(stderr).not.toMatch(/^\s+at /m)
  })
})
