/** `rushes serve` as its own process, asked by the program and by hand. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it } from 'vitest'
import {
  bash,
  createPlace,
  type Place,
  quickEngines,
  type Running,
  rushes,
  serve,
  start,
} from '../support/index.js'

const startServing = (place: Place, words: readonly string[]): Running =>
  start(place, ['serve', '--port', '0', ...words], { stdin: 'ignore' })

describe.concurrent('serve', () => {
  it('prints one line of JSON when it listens, and outputs can be fetched by their URLs', async () => {
    const place = await serve(createPlace(), quickEngines())
    const lines = place.process.printed.stdout.trim().split('\n')
    expect(lines).toHaveLength(1)
    expect(JSON.parse(lines[0] ?? '')).toEqual({
      url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
      data: `${place.home}/.local/state/rushes/service`,
      api_key: expect.stringMatching(/\S{20,}/),
      models: { image: 'rushes/preview-image', video: 'rushes/preview-video' },
      role: 'all',
      console: expect.stringMatching(new RegExp(`^${place.url}/link/[\\w-]{43}$`)),
    })
    const { code, stdout } = await rushes(place, ['run', 'image', 'a fox'])
    expect(code).toBe(0)
    expect(stdout).toMatch(new RegExp(`^${place.url}/outputs/\\S+\\n$`))
    const answer = await fetch(stdout.trim())
    expect(answer.headers.get('content-type')).toBe('image/png')
    expect(Buffer.from(await answer.arrayBuffer()).toString('latin1', 1, 4)).toBe('PNG')
  })

  it('prints a link to the console on the first start, which signs in once', async () => {
    const first = startServing(createPlace(), [])
    const [, origin = '', token] = await first.prints('stderr', /^Console: (http:\S+)\/link\/(\S+)$/m)
    await first.prints('stderr', /^Data in \S+; it is kept when the service stops\.$/m)
    const [asset] = /assets\/[\w.-]+\.js\?v=[\w-]+/.exec(await (await fetch(`${origin}/`)).text()) ?? []
    expect((await fetch(`${origin}/${asset}`)).headers.get('cache-control')).toContain('immutable')
    const follow = () =>
      fetch(`${origin}/api/auth/link`, {
        method: 'POST',
        headers: { origin },
        body: JSON.stringify({ token }),
      })
    const answer = await follow()
    expect(answer.status).toBe(200)
    expect(answer.headers.get('set-cookie')).toMatch(/; HttpOnly; SameSite=Strict$/)
    expect((await follow()).status).toBe(401)
  })

  // The clean-up of this very test: the one that vitest exports belongs to any of the concurrent tests.
  it('shows the first key when it listens, and not before; with --no-console it has no console', async ({
    onTestFinished,
  }) => {
    const place = createPlace()
    const other = createServer().listen(0, '127.0.0.1')
    onTestFinished(() => void other.close())
    await once(other, 'listening')
    const { port } = other.address() as AddressInfo
    for (const flag of ['--port', '--metrics-port']) {
      const refused = await rushes(place, ['serve', '--port', '0', flag, String(port)])
      expect(refused).toMatchObject({ code: 2, stdout: '' })
      expect(refused.stderr).toContain(`Port ${port} on 127.0.0.1 is in use.`)
      expect(refused.stderr).not.toMatch(/^\s+at /m)
    }
    const service = await serve(place, ['--no-console'])
    expect(service.apiKey).toMatch(/^rk_/)
    expect(JSON.parse(service.process.printed.stdout)).not.toHaveProperty('console')
    expect((await fetch(`${service.url}/`)).status).toBe(404)
  })

  // With a database: `serve-database.system.ts`.
  it('prints the four lines that make a run work in another terminal; three when it has its key', async () => {
    const place = createPlace()
    const words = ['--data', 'my data', ...quickEngines()]
    const person = startServing(place, words)
    await person.prints('stderr', /shown only once/)
    // The two pipes may be read in any order.
    await person.prints('stdout', /VIDEO_MODEL=.*\n/)
    const lines = person.printed.stdout
    expect(lines).toMatch(
      /^export RUSHES_BASE_URL=http:\S+\nexport RUSHES_API_KEY=\S+\nexport RUSHES_IMAGE_MODEL=rushes\/preview-image\nexport RUSHES_VIDEO_MODEL=rushes\/preview-video\n$/,
    )
    const pasted = await bash(createPlace(), `${lines}rushes run image "a fox" -q -o fox.png`)
    expect(pasted).toMatchObject({ code: 0, stderr: '', stdout: 'fox.png\n' })
    person.kill('SIGTERM')
    const { code, stdout, stderr } = await person.ended
    expect({ code, stdout }).toEqual({ code: 0, stdout: lines })
    // The log does not bury what a person is to read.
    expect(stderr).not.toContain('{')

    const again = startServing(place, words)
    await again.prints('stderr', /rushes admin key create --account default --data 'my data'`\.\n/)
    await again.prints('stdout', /VIDEO_MODEL=.*\n/)
    const three = again.printed.stdout
    expect(three).toBe(
      lines.replace(/^export RUSHES_API_KEY.*\n/m, '').replace(/http:\S+/, /http:\S+/.exec(three)?.[0] ?? ''),
    )
    const made = await bash(
      place,
      `${three}export RUSHES_API_KEY=$(rushes admin key create --account default --data 'my data' -q)
      rushes run image "a fox" -q`,
    )
    expect(made).toMatchObject({ code: 0, stderr: '', stdout: expect.stringMatching(/^http\S+\n$/) })
  })
})
