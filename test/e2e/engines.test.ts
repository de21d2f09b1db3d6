/** A model of one's own behind the real service, asked by the real program; and how the service ends. */
import { writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import {
  createPlace,
  onePixel,
  processesOf,
  runCli,
  rushes,
  type Service,
  serve,
  until,
} from '../support/index.js'

const ENGINE = /rushes-engine/

const askHealth = async ({ url }: Service, path: string) => (await fetch(`${url}${path}`)).status

it.each([
  [['--engine', 'sound=x'], /--engine: "sound=x" must have the form/],
  [['--engine', 'video=a', '--engine', 'video=b'], /given twice for video/],
  [
    ['--engine', 'image=imags:http://127.0.0.1:1'],
    /type must be one of images, comfyui, .*Did you mean "images"\?/s,
  ],
  [['--models', '/none.yaml'], /\/none\.yaml: no such file/],
  [['--engine-timeout', 'soon'], /not a valid duration/],
])('%j is a usage error', async (words, message) => {
  const { code, stdout, stderr } = await runCli(['serve', '--port', '0', ...words])
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  expect(stderr).toMatch(message)
})

/** A run carries its engine over a restart, so this engine itself does the work once the file `ready` is there. */
const onceReady = (until: string) => ['--engine', `image=test -e ready || { ${until}; }; ${onePixel}`]

describe.concurrent('the end of the service', () => {
  it('exits with 0 on SIGTERM during a render and an upload, and renders the run next time', async () => {
    const home = createPlace()
    const engine = onceReady(`trap '' TERM INT; while :; do sleep 1; done`)
    const place = await serve(home, engine)
    expect([await askHealth(place, '/healthz'), await askHealth(place, '/readyz')]).toEqual([200, 200])
    const { stdout } = await rushes(place, ['run', 'image', 'a fox', '--no-wait'])
    await until('the engine', () => processesOf(home, ENGINE).length > 0)
    const { hostname, port } = new URL(place.url)
    const upload = connect(Number(port), hostname)
    upload.on('error', () => {})
    upload.write(
      `POST /api/v1/runs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${place.apiKey}\r\nContent-Length: 900\r\n\r\n{`,
    )
    place.process.kill('SIGTERM')
    const { code, stderr } = await place.process.ended
    upload.destroy()
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    await until('the engine is gone', () => processesOf(home, ENGINE).length === 0)

    writeFileSync(join(home.folder, 'ready'), '')
    const next = await serve(home, engine)
    const words = ['wait', '--base-url', next.url, stdout.trim(), '-d']
    expect((await rushes(next.with({ RUSHES_API_KEY: place.apiKey }), words)).code).toBe(0)
  })
})
