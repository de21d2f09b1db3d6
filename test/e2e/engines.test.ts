/** How the real service ends while a command of its own renders. Words of `--engine`: test/cli/serve.test.ts. */
import { writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import {
  created,
  createPlace,
  onePixel,
  overPort,
  processesOf,
  runOf,
  type Service,
  serve,
  until,
} from '../support/index.js'

const ENGINE = /rushes-engine/

const askHealth = async ({ url }: Service, path: string) => (await fetch(`${url}${path}`)).status

/** A run carries its engine over a restart, so this engine itself does the work once the file `ready` is there. */
const onceReady = (until: string) => ['--engine', `image=test -e ready || { ${until}; }; ${onePixel}`]

it.concurrent('serve exits with 0 on SIGTERM during a render and an upload, and renders the run next time', async () => {
  const home = createPlace()
  const engine = onceReady(`trap '' TERM INT; while :; do sleep 1; done`)
  const place = await serve(home, engine)
  expect([await askHealth(place, '/healthz'), await askHealth(place, '/readyz')]).toEqual([200, 200])
  const id = await created(overPort(place))
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
  const asked = overPort(next.with({ RUSHES_API_KEY: place.apiKey }))
  await until('the end of the run', async () => (await runOf(asked, id)).status === 'succeeded')
})
